/** What there is to take over, read and decrypted. */
import {
  createDecrypt,
  loadRecords,
  readDatastoreKey,
  readSite,
  type DatastoreKey,
  type LoadedRecords,
  type Places,
} from '../../migrate/index.ts'
import type { Session } from '../session.ts'

export interface Source {
  loaded: LoadedRecords
  site: Awaited<ReturnType<typeof readSite>>
  /** Of files and records that cannot be read. */
  problems: string[]
}

export async function readSource(session: Session, places: Places): Promise<Source> {
  const progress = session.progress('Reading exports')
  const keys = await readKeys(places)
  const loaded = await loadRecords(places.exports, createDecrypt(keys.found), (count) =>
    progress.update(`Reading exports: ${count} records`),
  )
  const site = await readSite(places)
  progress.stop()
  const more = loaded.problemsMore === 0 ? [] : [`and ${loaded.problemsMore} more records that cannot be read`]
  return { loaded, site, problems: [...keys.problems, ...loaded.problems, ...more, ...site.problems] }
}

/** Definition files say more than what was made of them: records of the same names are left out. */
export function joinRoles(
  { records }: LoadedRecords,
  { rbac }: Source['site'],
): Pick<LoadedRecords['records'], 'role' | 'role_assignment' | 'group_mapping'> {
  const joined = (kind: 'role' | 'role_assignment' | 'group_mapping'): LoadedRecords['records']['role'] => {
    const names = new Set(rbac[kind].map(({ converted }) => converted.name))
    return [...rbac[kind], ...records[kind].filter(({ converted }) => !names.has(converted.name))]
  }
  return { role: joined('role'), role_assignment: joined('role_assignment'), group_mapping: joined('group_mapping') }
}

async function readKeys({ keyFiles }: Places): Promise<{ found: DatastoreKey[]; problems: string[] }> {
  const found: DatastoreKey[] = []
  const problems: string[] = []
  for (const path of keyFiles) {
    const key = await readDatastoreKey(path)
    if ('problem' in key) problems.push(key.problem)
    else found.push(key)
  }
  return { found, problems }
}
