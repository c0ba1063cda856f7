/** The file `/proc/<pid>/stat` (proc(5)). */
export interface ProcessStat {
  ppid: number
  pgid: number
  sid: number
  /** Clock ticks since boot. */
  startTime: number
  /** The process is a zombie: none of its threads runs. */
  isEnded: boolean
  /** It runs the program of its parent: forked, and has not called exec since. */
  isFork: boolean
}

/** `PF_FORKNOEXEC` of the kernel. */
const FORKED_WITHOUT_EXEC = 0x40

export function parseStat(text: string): ProcessStat {
  // Field 2, the command, may hold spaces and parentheses; the last parenthesis ends it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ', 20)
  const [state, ppid, pgid, sid] = fields
  return {
    ppid: Number(ppid),
    pgid: Number(pgid),
    sid: Number(sid),
    startTime: Number(fields[19]),
    // The main thread may have ended while others run; it is then a zombie, too.
    isFork: (Number(fields[6]) & FORKED_WITHOUT_EXEC) !== 0,
    isEnded: (state === 'Z' || state === 'X') && Number(fields[17]) <= 1,
  }
}
