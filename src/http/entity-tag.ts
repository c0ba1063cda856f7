/** @param ifMatch the header: entity tags, or `*` @returns whether one of them is `tag` (RFC 9110, 13.1.1) */
export function isTagged(ifMatch: string, tag: string): boolean {
  return ifMatch.split(',').some((given) => given.trim() === '*' || given.trim() === tag)
}
