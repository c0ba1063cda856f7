/** Exit codes (contract 09, 9.1). */
export const exitCodes = {
  ok: 0,
  /** Any error, or a failed execution. */
  failed: 1,
  /** Wrong usage, or an object named on the command line does not exist. */
  usage: 2,
  /** `--print-config`. */
  configPrinted: 3,
  /** Invalid configuration (EX_CONFIG). */
  config: 78,
  interrupted: 130,
  /** The reader closed the output, as `head` does. */
  outputClosed: 141,
} as const
