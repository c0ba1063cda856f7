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
  /** User of svc in whose name it runs; undefined: the server has not been asked yet who that is. */
  user: string | undefined
  chatUser: string
  command: string
  /** Undefined: it is not known yet whether the server has got it. */
  executions?: string[]
}

/** An announcement that is to be posted. */
export interface OwedAnnouncement {
  /** Of its execution. */
  id: string
  /** As the event has it. */
  said: Record<string, unknown>
  /** When, in milliseconds since the epoch. */
  at: number
}

interface Content {
  /** When the state was begun, in milliseconds since the epoch. */
  since: number
  owed: OwedResult[]
  announcements: OwedAnnouncement[]
  /** Ids of announcements that are posted or owed. */
  announced: string[]
  /** By the name of the adapter. */
  positions: Record<string, string>
  /** Inquiries that have been told. */
  inquiries: string[]
  /** Messages that have been dealt with, or are owed a result. */
  handled: string[]
}

/** Commands at once; a further one is refused. */
export const MAX_OWED = 500
/** Announcements that wait to be posted; a further one is dropped. */
const MAX_ANNOUNCEMENTS = 500
/** Ids that are remembered. */
const MAX_TOLD = 2_000

/** The state cannot be written, such as on a full disk. */
export class StateFailure extends Error {}

/** What writes throws StateFailure. */
export interface ChatState {
  readonly owed: readonly OwedResult[]
  find(key: string): OwedResult | undefined
  /** Resolves when it is on the disk. A new one that cannot be written is not owed. */
  put(entry: OwedResult): Promise<void>
  remove(key: string): Promise<void>
  readonly since: number
  readonly announcements: readonly OwedAnnouncement[]
  hasAnnounced(id: string): boolean
  /** One that cannot be written is not owed. @returns false: too many are owed, so that it is dropped */
  oweAnnouncement(announcement: OwedAnnouncement): Promise<boolean>
  removeAnnouncement(id: string): Promise<void>
  position(adapter: string): string | undefined
  setPosition(adapter: string, position: string): Promise<void>
  hasTold(inquiry: string): boolean
  noteTold(inquiry: string): Promise<void>
  /** Of messages of the chat; also after a restart. */
  hasHandled(message: string): boolean
  noteHandled(message: string): Promise<void>
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

  async function saveOr(undo: () => void): Promise<void> {
    try {
      await save()
    } catch (error) {
      undo()
      throw error
    }
  }

  const find = (key: string): OwedResult | undefined => content.owed.find((entry) => entry.key === key)
  const noteHandled = (message: string): void => {
    if (!content.handled.includes(message)) content.handled = [...content.handled, message].slice(-MAX_TOLD)
  }

  return {
    get owed() {
      return content.owed
    },
    find,
    put(entry) {
      const isNew = find(entry.key) === undefined
      content.owed = [...content.owed.filter(({ key }) => key !== entry.key), entry]
      noteHandled(entry.key)
      return saveOr(() => {
        if (!isNew) return
        content.owed = content.owed.filter(({ key }) => key !== entry.key)
        content.handled = content.handled.filter((key) => key !== entry.key)
      })
    },
    remove(key) {
      content.owed = content.owed.filter((entry) => entry.key !== key)
      return save()
    },
    since: content.since,
    get announcements() {
      return content.announcements
    },
    hasAnnounced: (id) => content.announced.includes(id),
    async oweAnnouncement(announcement) {
      const hasRoom = content.announcements.length < MAX_ANNOUNCEMENTS
      if (hasRoom) content.announcements = [...content.announcements, announcement]
      content.announced = [...content.announced, announcement.id].slice(-MAX_TOLD)
      await saveOr(() => {
        content.announcements = content.announcements.filter(({ id }) => id !== announcement.id)
        content.announced = content.announced.filter((id) => id !== announcement.id)
      })
      return hasRoom
    },
    removeAnnouncement(id) {
      content.announcements = content.announcements.filter((announcement) => announcement.id !== id)
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
      content.inquiries = [...content.inquiries, inquiry].slice(-MAX_TOLD)
      return save()
    },
    hasHandled: (message) => content.handled.includes(message),
    noteHandled(message) {
      if (content.handled.includes(message)) return Promise.resolve()
      noteHandled(message)
      return save()
    },
  }
}

const empty = (): Content => ({
  since: 0,
  owed: [],
  announcements: [],
  announced: [],
  positions: {},
  inquiries: [],
  handled: [],
})

function read(path: string): Content {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { ...empty(), since: Date.now() }
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
      return { ...empty(), since: Date.now(), ...(value as unknown as Partial<Content>) } // written by `replace`, perhaps of an older version
    }
  } catch {
    // said below
  }
  throw new CliFailure(`${path} is not a state file of svc chat. Move it away, or name another folder with --state.`)
}

/** @throws StateFailure */
async function replace(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`
  try {
    const file = await open(temporary, 'w', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
    await syncFolder(dirname(path))
  } catch (error) {
    throw new StateFailure(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`)
  }
}
