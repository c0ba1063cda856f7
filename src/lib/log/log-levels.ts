/** From the least to the most severe; AUDIT is above all others, so no level filters it out. */
export const logLevels = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL', 'AUDIT'] as const

export type LogLevel = (typeof logLevels)[number]
