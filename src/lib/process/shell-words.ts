/** Quotes a text as one word of a POSIX shell; plain words stay unquoted. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
