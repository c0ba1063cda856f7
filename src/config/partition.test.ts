import { expect, test } from 'vitest'
import { readPartition } from './partition.ts'

test.each([
  ['name:default', { name: 'default' }],
  ['name: kvstore', { name: 'kvstore' }],
  ['name:file, partition_file:/etc/svc/partition.yaml', { name: 'file', path: '/etc/svc/partition.yaml' }],
  ['name:file, partition_file:partition.yaml', { name: 'file', path: '/here/partition.yaml' }],
  ['name:hash, hash_ranges:MIN..10|20..max', { name: 'hash', ranges: [[0, 10], [20, 2 ** 32]] }], // prettier-ignore
  ['name:hash, hash_ranges:0..4294967296', { name: 'hash', ranges: [[0, 2 ** 32]] }],
])('%s', (text, rule) => {
  expect(readPartition(text, '/here')).toEqual(rule)
})

test.each([
  '',
  'default',
  'name:other',
  'name:file',
  'name:hash',
  'name:hash, hash_ranges:5..5',
  'name:hash, hash_ranges:9..5',
  'name:hash, hash_ranges:1..2..3',
  'name:hash, hash_ranges:0..4294967297',
  'name:hash, hash_ranges:0..1|',
])('"%s" is none', (text) => {
  expect(readPartition(text, '/here')).toBeUndefined()
})
