import { join } from 'node:path'
import type { Bus } from '../../src/bus/bus.ts'
import { createMemoryBus } from '../../src/bus/memory.ts'
import type { Database } from '../../src/db/database.ts'
import { openSqlite } from '../../src/db/sqlite/open.ts'

/** A real database file, and the bus that its facts come to. What a listener throws is not passed over. */
export async function openDatabase(folder: string): Promise<{ database: Database; bus: Bus }> {
  const bus = createMemoryBus((error) => {
    throw error
  })
  const database = await openSqlite({
    path: join(folder, 'svc.db'),
    synchronous: 'normal',
    announce: (facts) => facts.forEach((fact) => bus.publish(fact)),
  })
  return { database, bus }
}
