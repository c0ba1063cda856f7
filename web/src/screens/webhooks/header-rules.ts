/** Which headers a page can send. */

/** Browsers leave these out in silence, or write their own (Fetch Standard, forbidden request-headers). */
const forbidden =
  /^(accept-charset|accept-encoding|access-control-.*|connection|content-length|cookie2?|date|dnt|expect|host|keep-alive|origin|referer|set-cookie|te|trailer|transfer-encoding|upgrade|via|proxy-.*|sec-.*)$/i
/** The form has fields of their own for these, or knows what they are. */
const own: Readonly<Record<string, string>> = {
  'content-type': 'The page always sends application/json.',
  'x-auth-token': 'The page sends your own credentials.',
  'svc-api-key': 'The page sends your own credentials.',
  'svc-trace-tag': 'Use the field for the trace tag.',
  'idempotency-key': 'Use the field for the idempotency key.',
  prefer: 'Use the field for the seconds to wait.',
}

/** What is wrong with a header; undefined: nothing. */
export function problemOfHeader(name: string, value: string): string | undefined {
  if (name === '') return value === '' ? undefined : 'Enter a header name.'
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return 'Use only letters, digits and "-" in a header name.'
  const why = own[name.toLowerCase()]
  if (why !== undefined) return why
  if (forbidden.test(name)) return 'Browsers cannot send this header. Use the shell commands instead.'
  // As HTTP has them: one byte for each character.
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return 'Use only Latin-1 characters without line breaks in a header.'
  return undefined
}
