/** How long a job has had no end when it counts as stuck, where nothing else is asked for. */
export const STUCK_AFTER_S = 3_600;
