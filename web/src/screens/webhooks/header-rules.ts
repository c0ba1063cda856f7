/** Which headers a page can send. */

/** Browsers leave these out in silence, or write their own (Fetch Standard, forbidden request-headers). */
const forbidden =
  /^(accept-charset|accept-encoding|access-control-.*|connection|content-length|cookie2?|date|dnt|expect|host|keep-alive|origin|referer|set-cookie|te|trailer|transfer-encoding|upgrade|via|proxy-.*|sec-.*)$/i
/** The form has fields of their own for these, or knows what they are. */
const own: Readonly<Record<string, string>> = {
  'content-type': 'The body is sent as application/json.',
  'x-auth-token': 'The request is sent with your own login.',
  'svc-api-key': 'The request is sent with your own login.',
  'svc-trace-tag': 'There is a field for the trace tag.',
  'idempotency-key': 'There is a field for the idempotency key.',
  prefer: 'There is a field for the seconds to wait.',
}

/** What is wrong with a header; undefined: nothing. */
export function problemOfHeader(name: string, value: string): string | undefined {
  if (name === '') return value === '' ? undefined : 'The header has no name.'
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return 'A name of a header has letters, digits and "-" only.'
  const why = own[name.toLowerCase()]
  if (why !== undefined) return why
  if (forbidden.test(name)) return 'Browsers send no such header; use the lines for a shell.'
  // As HTTP has them: one byte for each character.
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return 'A header takes neither line breaks nor letters beyond Latin-1.'
  return undefined
}
