/** The thread of `rendering.ts`: renders the templates of one job after the other. */
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads'
import { Budget, defaultLimits, limitError, render, TemplateError } from '../../lib/template/index.ts'
import { Room } from './room.ts'
import {
  errorOf,
  failureOf,
  type FromThread,
  type Job,
  type Question,
  type Rendered,
  type ToThread,
} from './messages.ts'
import { PieceReader, piecesOf, type Owned, type Piece, type RemoteForm } from './pieces.ts'

/** Questions of one job to the server, which answers each in some ten microseconds. */
const MAX_QUESTIONS = 10_000

/** The server has thrown; it knows the error. */
class ErrorOfServer extends Error {}

const port = parentPort as MessagePort // a thread has one
/** Counts the answers. */
const answered = workerData as Int32Array<SharedArrayBuffer> // of `rendering.ts`
let asked = 0
let given = new PieceReader(remote)
let results: Iterator<Piece> | undefined

function post(message: FromThread): void {
  port.postMessage(message)
}

function renderAll({ texts, variables, filters, maxSteps, maxWork, maxMilliseconds, room: left }: Job): Rendered {
  const startedAt = processorTime()
  const used = (): number => processorTime() - startedAt
  const named = new Map(Object.entries(variables))
  const room = new Room(left)
  const values = texts.map((text) => {
    const limits = { ...defaultLimits, maxSteps, maxWork, maxMilliseconds: maxMilliseconds - used() }
    const budget = new Budget(limits, 'the template', processorTime)
    return room.use(render(text, named, { budget, filters }))
  })
  return { values, room: room.left, milliseconds: used() }
}

/** In milliseconds: of this thread, or where Node does not tell it, the time that has passed. */
function processorTime(): number {
  // Node 22.14 does not have it.
  if (typeof process.threadCpuUsage !== 'function') return performance.now()
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function ask(id: number, what: Question['what'], about: unknown): unknown {
  asked += 1
  if (asked > MAX_QUESTIONS) throw limitError(`the templates read more than ${MAX_QUESTIONS} times from outside`)
  const before = Atomics.load(answered, 0)
  post({ kind: 'question', id, what, about: [...piecesOf(about, [])] })
  Atomics.wait(answered, 0, before)
  const message = receiveMessageOnPort(port)?.message as ToThread
  if (message.kind === 'refusal') {
    const error = errorOf(message.failure)
    // The template that calls a function names it in the error.
    throw what === 'call' || error instanceof TemplateError ? error : new ErrorOfServer(error.message)
  }
  if (message.kind !== 'answer') throw new Error(`the server sent "${message.kind}" instead of an answer`)
  const reader = new PieceReader(remote)
  message.pieces.forEach((piece) => reader.add(piece))
  return reader.value
}

function remote({ id, kind }: RemoteForm): Owned {
  if (kind === 'function') return (positional, named) => ask(id, 'call', [positional, named])
  const known = new Map<string, unknown>()
  let value: { known: unknown } | undefined
  return {
    get(name) {
      if (!known.has(name)) known.set(name, ask(id, 'get', name))
      return known.get(name)
    },
    has: (name) => ask(id, 'has', name) === true,
    ...(kind === 'namespace' ? {} : { value: () => (value ??= { known: ask(id, 'value', null) }).known }),
  }
}

function perform(job: Job): void {
  asked = 0
  try {
    results = piecesOf(renderAll(job), [])
    sendNext()
  } catch (error) {
    post({ kind: 'failed', failure: failureOf(error), isOfServer: error instanceof ErrorOfServer })
  }
}

function sendNext(): void {
  const next = results?.next()
  if (next?.done === false) post({ kind: 'result', piece: next.value })
}

port.on('message', (message: ToThread) => {
  if (message.kind === 'more') sendNext()
  if (message.kind !== 'job') return
  given.add(message.piece)
  if (!given.isComplete) return
  const job = given.value as Job // of `rendering.ts`
  given = new PieceReader(remote)
  perform(job)
})
post({ kind: 'ready' })
