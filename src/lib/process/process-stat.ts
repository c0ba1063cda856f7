/** The file `/proc/<pid>/stat` (proc(5)). */
export interface ProcessStat {
  ppid: number
  pgid: number
  sid: number
  /** Clock ticks since the machine was started. */
  startTime: number
  /** It is a zombie: nothing of it runs any more. */
  isEnded: boolean
}

export function parseStat(text: string): ProcessStat {
  // Field 2, the command, may hold blanks and brackets; its last bracket ends it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ', 20)
  const [state, ppid, pgid, sid] = fields
  return {
    ppid: Number(ppid),
    pgid: Number(pgid),
    sid: Number(sid),
    startTime: Number(fields[19]),
    // A leading thread that ended alone is a zombie too, while the others go on.
    isEnded: (state === 'Z' || state === 'X') && Number(fields[17]) <= 1,
  }
}
