/** The time of the server: that of the browser's machine may be wrong, and what runs would seem to run for minutes more. */

/** Answers tell whole seconds, and take a while: less than this is no difference. */
const SLACK_MS = 3000

let aheadMs = 0

/** @param response whose header `Date` says when the server has answered */
export function setServerTime(response: Response): void {
  const told = Date.parse(response.headers.get('Date') ?? '')
  if (Number.isNaN(told)) return
  const difference = told - Date.now()
  aheadMs = Math.abs(difference) <= SLACK_MS ? 0 : difference
}

/** Milliseconds since the epoch. */
export function serverNow(): number {
  return Date.now() + aheadMs
}
