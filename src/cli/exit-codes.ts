/** What the executable ends with (contract 09, 9.1). */
export const exitCodes = {
  ok: 0,
  /** Anything that went wrong, or an execution that failed. */
  failed: 1,
  /** Wrong use of a command, or something named on the command line does not exist. */
  usage: 2,
  /** `--print-config`. */
  configPrinted: 3,
  /** A configuration that cannot be used (EX_CONFIG). */
  config: 78,
  interrupted: 130,
  /** Whoever read the output closed it, as `head` does. */
  outputClosed: 141,
} as const
