import { routeUnknown } from '../../core/errors.ts'
import { Reply, route, type Route } from '../../http/index.ts'
import { encodings, type Encoding, type Files } from './files.ts'

/**
 * The page runs only its own scripts, connects only to its own server, and cannot be framed. Text
 * from outside cannot become code: even a script of ours could not hand a text to the browser as markup.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const mediaTypes: Record<string, string> = {
  css: 'text/css; charset=UTF-8',
  html: 'text/html; charset=UTF-8',
  js: 'text/javascript; charset=UTF-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=UTF-8',
}

export function createUiRoutes(files: Files): Route[] {
  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/ui/:file',
      // The page is the same for every user, and shows the login form.
      permission: 'public',
      summary: 'A file of the web client, whose page is at `/`.',
      response: { type: 'string' },
      mediaType: '*/*',
      failures: [404],
      async handler({ params, headers }) {
        const name = params.file
        const wanted = preferredEncoding(headers['accept-encoding'])
        const compressed = wanted === undefined ? undefined : await files.read(name, wanted)
        const content = compressed ?? (await files.read(name, undefined))
        if (content === undefined) throw routeUnknown()
        const isPage = name === 'index.html'
        return new Reply(content, {
          headers: {
            'Content-Type': mediaTypes[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
            ...(compressed === undefined ? {} : { 'Content-Encoding': wanted ?? '' }),
            Vary: 'Accept-Encoding, Origin',
            // Other content has another name, but for the page, which names the others.
            'Cache-Control': isPage ? 'no-cache' : 'public, max-age=31536000, immutable',
            'Cross-Origin-Resource-Policy': 'same-origin',
            ...(isPage
              ? { 'Content-Security-Policy': contentSecurityPolicy, 'Cross-Origin-Opener-Policy': 'same-origin' }
              : {}),
          },
        })
      },
    }),
  ]
}

/** The shortest that the client takes (RFC 9110, 12.5.3); it is not asked which it likes better. */
function preferredEncoding(header: string | string[] | undefined): Encoding | undefined {
  const accepted = new Set<string>()
  for (const part of String(header ?? '').split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    if (!parameters.some((text) => /^q=0(?:\.0*)?$/.test(text))) accepted.add(name)
  }
  return encodings.find(({ name }) => accepted.has(name))?.name
}
