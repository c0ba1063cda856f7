import { expect, test } from 'vitest'
import { makeExecution } from '../../../../tests/helpers/execution.ts'
import type { Unit } from '../../../db/index.ts'
import { Lru } from '../../../lib/cache/index.ts'
import { createCommit, type WorkflowCommit } from './commit.ts'

const nothing: Unit = { steps: [], facts: [] }

async function written(plan: (commit: WorkflowCommit) => void): Promise<Unit | undefined> {
  let unit: Unit | undefined
  const database = {
    write(given: Unit) {
      unit = given
      return Promise.resolve([])
    },
  }
  const commit = createCommit({
    database,
    results: new Lru(1),
    planLines: () => nothing,
    forget: () => undefined,
    remember: () => undefined,
  })
  plan(commit)
  await commit.write()
  return unit
}

test('a commit waits for the disk when it ends something or is promised, not when it only begins something', async () => {
  const begin = (commit: WorkflowCommit): void => {
    commit.add(nothing)
    commit.putExecution(makeExecution({ status: 'running' }))
  }
  expect(await written(begin)).toMatchObject({ isUnpromised: true })
  const ends = (commit: WorkflowCommit): void => {
    begin(commit)
    commit.putExecution(makeExecution({ status: 'succeeded' }))
    begin(commit)
  }
  expect(await written(ends)).not.toHaveProperty('isUnpromised')
  const promises = (commit: WorkflowCommit): void => {
    commit.promise()
    begin(commit)
  }
  expect(await written(promises)).not.toHaveProperty('isUnpromised')
  expect(await written(() => undefined)).toBe(undefined)
})
