/** The version endpoint, the OpenAPI document and the documentation page. */
import { locatePart, readPart } from '../core/bundle.ts'
import { routeUnknown } from '../core/errors.ts'
import type { JsonSchema } from '../lib/schema/index.ts'
import { version } from '../core/version.ts'
import { openApiDocument } from './openapi.ts'
import { Reply, type JsonRoute, type Route } from './route.ts'
import { writeJson } from '../lib/json/index.ts'

export interface AboutOptions {
  /** Every other route. */
  routes: readonly Route[]
  /** Address of the API, without version and trailing slash. */
  apiUrl(): string
}

const indexSchema: JsonSchema = {
  title: 'About',
  type: 'object',
  required: ['version', 'docs_url'],
  properties: { version: { type: 'string' }, docs_url: { type: 'string' } },
}

export function createAboutRoutes(options: AboutOptions): Route[] {
  const index: JsonRoute = {
    surface: 'api',
    method: 'get',
    path: '/',
    permission: 'authenticated',
    summary: 'The version of the server and the address of this documentation.',
    response: indexSchema,
    handler: () => ({ version, docs_url: `${options.apiUrl()}/v1/docs` }),
  }
  const page: JsonRoute = {
    surface: 'api',
    method: 'get',
    path: '/docs',
    permission: 'public',
    summary: 'The documentation of the API, as a page.',
    response: { type: 'string' },
    mediaType: 'text/html; charset=UTF-8',
    handler: () =>
      new Reply(pageHtml(publicPath(options.apiUrl())), {
        headers: { 'Content-Security-Policy': contentSecurityPolicy },
      }),
  }
  const file: JsonRoute = {
    surface: 'api',
    method: 'get',
    path: '/docs/:file',
    permission: 'public',
    summary: 'A file of the documentation page.',
    response: { type: 'string' },
    failures: [404],
    handler: ({ params }) => pageFile(params['file'] ?? '', publicPath(options.apiUrl()), libraryFile),
  }
  const document: JsonRoute = {
    surface: 'api',
    method: 'get',
    path: '/openapi.json',
    permission: 'public',
    summary: 'The OpenAPI document of this API.',
    response: { type: 'object' },
    // The document holds the address of the API, which is known once the listeners have their ports.
    handler: () => {
      text ??= Buffer.from(writeJson(openApiDocument([...options.routes, ...routes], publicPath(options.apiUrl()))))
      return new Reply(text, { headers: { 'Content-Type': 'application/json; charset=UTF-8' } })
    },
  }
  const routes: Route[] = [index, document, page, file]
  // All answers share the same bytes: a client without a credential may ask often on a connection that it never reads.
  let text: Buffer | undefined
  const libraryFile = createLibrary()
  return routes
}

/** `/api` of `https://svc.example.com/api`: the prefix that a proxy strips from every path. */
function publicPath(apiUrl: string): string {
  return new URL(apiUrl).pathname.replace(/\/+$/, '')
}

const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'"

const pageHtml = (base: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>svc API</title>
    <link rel="stylesheet" href="${base}/v1/docs/swagger-ui.css">
  </head>
  <body>
    <div id="api"></div>
    <script src="${base}/v1/docs/swagger-ui-bundle.js"></script>
    <script src="${base}/v1/docs/start.js"></script>
  </body>
</html>
`

const startScript = (base: string): string =>
  `SwaggerUIBundle({ url: ${writeJson(`${base}/v1/openapi.json`)}, dom_id: '#api', deepLinking: true })\n`

const libraryFiles: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=UTF-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=UTF-8',
}

type Library = (name: string) => Promise<Buffer>

/** Reads each file once. */
function createLibrary(): Library {
  const files = new Map<string, Promise<Buffer>>()
  return (name) => {
    const known = files.get(name)
    if (known !== undefined) return known
    const content = readPart(locateFile(name))
    files.set(name, content)
    content.catch(() => files.delete(name))
    return content
  }
}

/** @throws ROUTE_UNKNOWN for any other name */
async function pageFile(name: string, base: string, libraryFile: Library): Promise<Reply> {
  const headers = { 'Cache-Control': 'max-age=3600' }
  if (name === 'start.js') {
    return new Reply(Buffer.from(startScript(base)), {
      headers: { ...headers, 'Content-Type': 'text/javascript; charset=UTF-8' },
    })
  }
  const type = Object.hasOwn(libraryFiles, name) ? libraryFiles[name] : undefined
  if (type === undefined) throw routeUnknown()
  return new Reply(await libraryFile(name), { headers: { ...headers, 'Content-Type': type } })
}

/** In the source tree npm has put the files into `node_modules`. */
function locateFile(name: string): URL {
  return locatePart(`../../node_modules/swagger-ui-dist/${name}`, `./api-docs/${name}`, import.meta.url)
}
