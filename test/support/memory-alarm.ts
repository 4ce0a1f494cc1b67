// Makes RabbitMQ believe that it has no memory left, so that it blocks publishers, and that it has some again.

import type { RabbitmqServer } from '../../scripts/services/rabbitmq.ts';
import { until } from './until.ts';

/** As scripts/services/rabbitmq.ts has it. */
const USUAL_LIMIT = '{absolute, 1000000000}';
/** For rabbitmqctl, which is slow to start where the processor is busy. */
const CTL_LIMIT_MS = 90_000;

/** Resolves when the broker says so itself: rabbitmqctl has been seen to succeed and change nothing. */
export async function setMemoryAlarm(
  broker: Pick<RabbitmqServer, 'ctl'>,
  isAlarming: boolean,
): Promise<void> {
  const limit = isAlarming ? '0.0' : USUAL_LIMIT;
  await until(
    `the memory alarm is ${isAlarming ? 'on' : 'off'}`,
    async () => {
      const alarms = await broker.ctl(
        'eval',
        `vm_memory_monitor:set_vm_memory_high_watermark(${limit}), rabbit_alarm:get_alarms().`,
      );
      return (alarms.trim() !== '[]') === isAlarming ? true : undefined;
    },
    { limitMs: CTL_LIMIT_MS },
  );
}
