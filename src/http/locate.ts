/** Maps the path of a request to its surface and the path within it (contract 00, 0.2). */
import { pathUndecodable } from '../core/errors.ts'
import type { Surface } from './route.ts'

const surfaces: ReadonlySet<string> = new Set<Surface>(['auth', 'api', 'stream'])

/** The API listener also serves the other surfaces, so that one host needs no proxy and one open port. */
const answeredBy: Record<Surface, ReadonlySet<string>> = {
  auth: new Set<Surface>(['auth']),
  api: surfaces,
  stream: new Set<Surface>(['stream']),
}

/** The page of the web client at its public address. Its other files are ordinary routes. */
const webClient: RouteLocation = { surface: 'api', path: '/ui/index.html' }

export interface RouteLocation {
  surface: Surface
  /** Begins with `/`; no version, no trailing slash. */
  path: string
}

/**
 * `/X`, `/v1/X`, `/<surface>/X` and `/<surface>/v1/X` are one path. One trailing slash and the encoding of characters
 * make no difference. An encoded slash stays a part of its segment. `/` on the API listener is the web client, not
 * `/v1/`.
 *
 * @throws PATH_UNDECODABLE
 */
export function locateRoute(listener: Surface, rawPath: string): RouteLocation {
  if (listener === 'api' && rawPath === '/') return webClient
  const encoded = rawPath.includes('%') ? reencode(rawPath) : rawPath
  const path = encoded.length > 1 && encoded.endsWith('/') ? encoded.slice(0, -1) : encoded

  let surface = listener
  let inner = withoutFirst(path, 'v1')
  const first = firstSegment(path)
  // `/stream` is the general stream itself; as a prefix it has a path after it.
  if (answeredBy[listener].has(first) && path.length > first.length + 1) {
    surface = first as Surface // it is in the set
    inner = withoutFirst(path.slice(first.length + 1), 'v1')
  } else if (answeredBy[listener].has(first) && first !== 'stream') {
    surface = first as Surface // as above
    inner = '/'
  }
  if (listener === 'api' && surface === 'api' && inner === '/stream') surface = 'stream'
  return { surface, path: inner }
}

function reencode(rawPath: string): string {
  try {
    return rawPath
      .split('/')
      .map((segment) => encodeURIComponent(decodeURIComponent(segment)))
      .join('/')
  } catch {
    throw pathUndecodable(rawPath)
  }
}

function firstSegment(path: string): string {
  const end = path.indexOf('/', 1)
  return end === -1 ? path.slice(1) : path.slice(1, end)
}

function withoutFirst(path: string, segment: string): string {
  if (path === `/${segment}`) return '/'
  return path.startsWith(`/${segment}/`) ? path.slice(segment.length + 1) : path
}
