export function takeLock(path: string, mark: string): { release: () => void } | { holder: number };
