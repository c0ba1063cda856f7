/** What the bot still owes, in a file: a command is in it from before it is sent until its result has been posted. */
import { open, rename } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { readJson, writeJson } from '../../lib/json/index.ts'
import { syncFolder } from '../../lib/files/index.ts'
import { dirname } from 'node:path'
import { isObject } from '../../lib/schema/index.ts'
import { CliFailure } from '../failures.ts'

/** A command whose result is owed. */
export interface OwedResult {
  /** Of the chat message. */
  key: string
  adapter: string
  channel: string
  /** Undefined: the answers go into the channel itself. */
  thread?: string | undefined
  /** User of svc in whose name it runs. */
  user: string
  chatUser: string
  command: string
  /** Undefined: it is not known yet whether the server has got it. */
  executions?: string[]
}

interface Content {
  owed: OwedResult[]
  /** By the name of the adapter. */
  positions: Record<string, string>
  /** Inquiries that have been told. */
  inquiries: string[]
}

/** Commands at once; a further one is refused. */
export const MAX_OWED = 500
const MAX_INQUIRIES = 2_000

export interface ChatState {
  readonly owed: readonly OwedResult[]
  find(key: string): OwedResult | undefined
  /** Resolves when it is on the disk. */
  put(entry: OwedResult): Promise<void>
  remove(key: string): Promise<void>
  position(adapter: string): string | undefined
  setPosition(adapter: string, position: string): Promise<void>
  hasTold(inquiry: string): boolean
  noteTold(inquiry: string): Promise<void>
}

/** @throws CliFailure for a file that is none of ours */
export function openChatState(path: string): ChatState {
  const content = read(path)
  let writing: Promise<void> = Promise.resolve()
  let isWaiting = false

  /** Writes that wait share one. */
  function save(): Promise<void> {
    if (isWaiting) return writing
    isWaiting = true
    writing = writing
      .catch(() => undefined)
      .then(async () => {
        isWaiting = false
        await replace(path, writeJson(content))
      })
    return writing
  }

  return {
    get owed() {
      return content.owed
    },
    find: (key) => content.owed.find((entry) => entry.key === key),
    put(entry) {
      content.owed = [...content.owed.filter(({ key }) => key !== entry.key), entry]
      return save()
    },
    remove(key) {
      content.owed = content.owed.filter((entry) => entry.key !== key)
      return save()
    },
    position: (adapter) => (Object.hasOwn(content.positions, adapter) ? content.positions[adapter] : undefined),
    setPosition(adapter, position) {
      if (content.positions[adapter] === position) return Promise.resolve()
      content.positions[adapter] = position
      return save()
    },
    hasTold: (inquiry) => content.inquiries.includes(inquiry),
    noteTold(inquiry) {
      content.inquiries = [...content.inquiries, inquiry].slice(-MAX_INQUIRIES)
      return save()
    },
  }
}

function read(path: string): Content {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { owed: [], positions: {}, inquiries: [] }
    throw new CliFailure(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
  try {
    const value = readJson(text)
    if (
      isObject(value) &&
      Array.isArray(value['owed']) &&
      isObject(value['positions']) &&
      Array.isArray(value['inquiries'])
    ) {
      return value as unknown as Content // written by `replace`
    }
  } catch {
    // said below
  }
  throw new CliFailure(`${path} is not a state file of svc chat. Move it away, or name another folder with --state.`)
}

async function replace(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`
  const file = await open(temporary, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
  await syncFolder(dirname(path))
}
