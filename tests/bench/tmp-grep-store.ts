import Sqlite from 'better-sqlite3'
import { join } from 'node:path'
import { newId } from '../../src/core/ids.ts'
import { formatMicros } from '../../src/core/time.ts'
import { connect, runCommand, startBenchServer } from './server.ts'
const folder = process.argv[2] ?? ''
const count = Number(process.argv[3])
const server = await startBenchServer({ basePath: folder })
const client = await connect(server.port)
await runCommand(client, 'echo hi')
client.close()
await server.stop()
const db = new Sqlite(join(folder, 'svc.db'))
db.pragma('journal_mode = off')
db.pragma('synchronous = off')
function copier(table: string) {
  const row = db.prepare(`select * from ${table}`).get() as Record<string, unknown>
  const columns = Object.keys(row)
  const insert = db.prepare(
    `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
  )
  return (changed: Record<string, unknown>) => insert.run(...columns.map((c) => (c in changed ? changed[c] : row[c])))
}
const words =
  'deploy release build artifact started finished connection refused timeout server database replica backup archive upload download checksum verified container image layer pulled service restarted healthy unhealthy warning error notice user session token request response latency queue worker job retry attempt host network interface address port closed opened file directory removed created updated'.split(
    ' ',
  )
let seed = 1
const rnd = (n: number) => {
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  return seed % n
}
function text(i: number): string {
  let out = ''
  const lines = 2 + rnd(6)
  for (let l = 0; l < lines; l++) {
    out += `2026-11-${10 + rnd(18)}T${10 + rnd(12)}:${10 + rnd(49)}:${10 + rnd(49)} `
    for (let w = 0; w < 6; w++) out += words[rnd(words.length)] + ' '
    out += rnd(1_000_000).toString(16) + '\n'
  }
  if (i === 1000) out += 'needle-oldest\n'
  if (i % 100_000 === 50_000) out += 'needle-rare\n'
  return out
}
const addE = copier('executions'),
  addO = copier('output_records')
db.exec('begin')
for (const { name } of db.prepare(`select name from sqlite_master where type = 'trigger'`).all() as { name: string }[])
  db.exec(`drop trigger ${name}`)
const start = Date.now() * 1000 - count * 2000
let bytes = 0
for (let i = 0; i < count; i++) {
  const micros = start + i * 2000
  const id = newId(micros),
    at = formatMicros(micros)
  addE({
    id,
    liveaction_id: newId(micros + 1),
    trace_id: newId(micros),
    status: i % 6 === 0 ? 'failed' : 'succeeded',
    user: `user${i % 20}`,
    start_timestamp: at,
    end_timestamp: formatMicros(micros + 1000),
  })
  const data = text(i)
  bytes += data.length
  addO({ execution_id: id, id: newId(micros + 2), timestamp: at, data, stdout_lines: 0 })
}
db.exec('commit')
db.close()
console.log('bytes of output', bytes)
