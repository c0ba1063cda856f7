/**
 * The one Express app behind all listeners. It turns the route table into handlers. Every request takes the same steps:
 *
 * 1. `chain/incoming.ts`: request id, security headers, health, origin, address;
 * 2. the router below: the route for the path and the method;
 * 3. `chain/prepare.ts`: credentials, permission, body, schema;
 * 4. `chain/handlers.ts`: admission, handler, answer;
 * 5. `errors.ts`: the one answer to every error.
 */
import express, { type Express, type Request, type Response } from 'express'
import { idMissing, methodNotAllowed, routeUnknown } from '../core/errors.ts'
import type { SurfaceTag } from './admission.ts'
import { createAnswerRoom, defaultAnswerLimits } from './answers.ts'
import { createBodyRoom } from './chain/body-room.ts'
import { jsonHandler, streamHandler } from './chain/handlers.ts'
import { identify } from './chain/incoming.ts'
import { states, type HttpAppOptions, type Shared } from './chain/state.ts'
export type { HttpAppOptions } from './chain/state.ts'
import { createErrorResponder } from './errors.ts'
import { createRepeats } from './repeats.ts'
import { surfaces, type Route, type Surface } from './route.ts'

export function createHttpApp(options: HttpAppOptions): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.set('query parser', false)

  app.use(identify(options))
  const limits = options.answers ?? defaultAnswerLimits
  const shared: Shared = {
    room: createBodyRoom(options.maxBodyBytes),
    answers: createAnswerRoom(limits),
    idleMs: limits.idleMs,
    repeats: createRepeats(options.ledger),
  }
  for (const surface of surfaces) {
    app.use(`/${surface}`, createRouter(options, surface, shared))
  }
  app.use((): void => {
    throw routeUnknown()
  })
  app.use(
    createErrorResponder((request) => {
      const { requestId = '-', observation } = states.get(request) ?? {}
      const { surface } = request as Request & SurfaceTag // the listener set it
      const about = { request_id: requestId, user: observation?.user, remote_address: options.peers.addressOf(request) }
      return { log: options.logs[surface], about }
    }),
  )
  return app
}

function createRouter(options: HttpAppOptions, surface: Surface, shared: Shared): express.Router {
  const router = express.Router({ caseSensitive: true, strict: true })
  const byPath = new Map<string, Route[]>()
  for (const route of options.routes) {
    if (route.surface !== surface) continue
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      byPath.set(path, [...(byPath.get(path) ?? []), route])
    }
  }
  // Literal segments before variables: `/executions/views/filters` is not an execution called `views`.
  const paths = [...byPath.keys()].sort((a, b) => specificity(b).localeCompare(specificity(a)))
  for (const path of paths) {
    const at = router.route(path)
    const methods: string[] = []
    for (const route of byPath.get(path) ?? []) {
      if (route.kind === 'stream') {
        // HEAD has no body: a stream would have nothing to send and would never end.
        at.head(refuseMethod)
        at[route.method](streamHandler(options, route, shared))
      } else {
        at[route.method](jsonHandler(options, route, shared))
      }
      methods.push(route.method.toUpperCase())
    }
    at.all(refuseMethod)

    function refuseMethod(request: Request, response: Response): void {
      if (states.get(request)?.endsInSlash === true) {
        const ofOne = routesBelow(path).find(({ method }) => method.toUpperCase() === request.method)
        if (ofOne !== undefined) throw idMissing(request.method, ofOne.path.replace(/[:*](\w+)/, '<$1>'))
      }
      response.setHeader('Allow', methods.join(', '))
      throw methodNotAllowed(request.method, methods)
    }
  }
  return router

  /** The routes of one member of the collection at `path`. */
  function routesBelow(path: string): Route[] {
    return [...byPath].flatMap(([below, routes]) =>
      below.startsWith(`${path}/`) && /^[:*]\w+$/.test(below.slice(path.length + 1)) ? routes : [],
    )
  }
}

function specificity(path: string): string {
  return path
    .split('/')
    .map((segment) => (segment.startsWith('*') ? '0' : segment.startsWith(':') ? '1' : '2'))
    .join('')
}
