import { expect, test } from 'vitest'
import type { WorkflowExplanation } from '../../modules/workflows/types.ts'
import { renderExplanation } from './explanation.ts'
import { readExplanation } from './read-explanation.ts'

const common = { published: {}, reads: [], errors: [], has_changed: false }

const explanation: WorkflowExplanation = {
  status: 'running',
  message: 'The workflow waits for 1 action, 1 join that lacks arrivals.',
  tasks: [
    {
      task: 'build',
      route: 0,
      status: 'succeeded',
      join: null,
      transitions: [
        {
          ...common,
          when: '<% result().n < ctx(limit) %>',
          value: true,
          is_taken: true,
          do: ['test', 'scan'],
          published: { image: 'i7' },
          reads: [
            { name: 'result', args: [], value: { n: 1 } },
            { name: 'ctx', args: ['limit'], value: 3 },
          ],
        },
        { ...common, when: '<% failed() %>', value: false, is_taken: false, do: ['fail'], has_changed: true },
      ],
      unsuccessful: [],
    },
    {
      task: 'scan',
      route: 2,
      status: 'failed',
      join: { need: 2, arrived: ['a', 'b'], missing: [] },
      transitions: [
        { ...common, when: '<% ctx(x) %>', value: null, is_taken: false, do: ['ship'], errors: ['Oops: \u001b[31mno'] },
      ],
      unsuccessful: [{ execution: 'e7', item: 3, status: 'abandoned' }],
    },
    {
      task: 'gone',
      route: 0,
      status: 'failed',
      join: null,
      transitions: null,
      unsuccessful: [{ execution: 'e8', item: null, status: 'timeout' }],
    },
  ],
  tasks_left_out: 4,
  failures: [
    {
      message: 'Oops: no',
      task: 'scan',
      route: 2,
      expression: '<% ctx(x) %>',
      variables: { limit: 3 },
      reads: [{ name: 'ctx', args: ['limit'], value: 3 }],
    },
    { message: 'Execution failed.', task: 'gone', route: 0, expression: null, variables: null, reads: [] },
  ],
  failures_left_out: 1,
  waits_for: [
    { kind: 'delay', task: 'test', route: 0, item: 3, execution: 'e1', until: '2030-01-01T00:00:00Z', join: null },
    {
      kind: 'arrivals',
      task: 'ship',
      route: 0,
      item: null,
      execution: null,
      until: null,
      join: { need: 2, arrived: ['scan'], missing: ['test'] },
    },
    { kind: 'start', task: 'tell', route: 0, item: null, execution: null, until: null, join: null },
  ],
  waits_left_out: 0,
}

test('an explanation says what was taken and why, what failed, and what the workflow waits for', () => {
  expect(renderExplanation(explanation, false)).toBe(`The workflow waits for 1 action, 1 join that lacks arrivals.

4 earlier passes of tasks are left out. Name a task with --task.

build  succeeded
   taken      -> test, scan  when <% result().n < ctx(limit) %> = true  publishes image = "i7"
       result() is {"n":1}, ctx(limit) is 3
   not taken  -> fail        when <% failed() %> = false
       What the condition reads has changed since the task ended.

scan (route 2)  failed
   join: needs 2, arrived: a, b
   item 3: abandoned (e7)
   not taken  -> ship  when <% ctx(x) %>
       error: Oops: \\u001b[31mno

gone  failed
   action: timeout (e8)
   Nothing follows: its action could not be started.

Errors:
   scan (route 2): error: Oops: no
       expression: <% ctx(x) %>
       it read: ctx(limit) is 3
       it saw: limit = 3
   gone: error: Execution failed.
   and 1 more

It waits for:
   test, item 3: an action waits for its delay (e1, until 2030-01-01T00:00:00Z)
   ship: the join lacks arrivals (join: needs 2, arrived: scan, missing: test)
   tell: it starts when the workflow goes on
`)
})

test('an explanation is read as it was sent', () => {
  expect(readExplanation({ ...explanation })).toEqual(explanation)
})

test('what another server sends is printed as far as it is known', () => {
  for (const strange of [{}, { tasks: [{ transitions: [{}], join: 3 }] }, { failures: [null], waits_for: [7] }])
    expect(renderExplanation(readExplanation(strange), false)).toMatch(/\n$/)
})
