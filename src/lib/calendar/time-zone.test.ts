import { expect, test } from 'vitest'
import { isTimeZone, machineTimeZone, offsetAt } from './time-zone.ts'

test.each([
  ['UTC', true],
  ['Europe/Berlin', true],
  ['america/los_angeles', true],
  ['US/Pacific', true],
  ['Etc/GMT+5', true],
  ['Europe', false],
  ['Mars/Olympus', false],
  ['+05:30', false],
  ['', false],
  ['../etc/passwd', false],
  ['a'.repeat(10_000), false],
])('%j: %s', (name, expected) => {
  expect(isTimeZone(name)).toBe(expected)
})

test.each([
  ['UTC', '2030-06-01T00:00:00Z', 0],
  ['America/Los_Angeles', '2030-01-01T00:00:00Z', -8 * 3600],
  ['America/Los_Angeles', '2030-06-01T00:00:00Z', -7 * 3600],
  ['Europe/Berlin', '2027-03-28T00:59:59Z', 3600],
  ['Europe/Berlin', '2027-03-28T01:00:00Z', 7200],
  ['Asia/Kolkata', '2030-06-01T00:00:00Z', 19_800],
  ['Asia/Kathmandu', '2030-06-01T00:00:00Z', 20_700],
  ['America/St_Johns', '2030-06-01T00:00:00Z', -9000],
  ['Europe/Berlin', '1850-01-01T00:00:00Z', 3208],
])('%s at %s', (zone, at, expected) => {
  expect(offsetAt(zone, Date.parse(at) / 1000)).toBe(expected)
})

test.each([
  ['Asia/Kathmandu', 'Asia/Kat'],
  ['Europe/Berlin', 'Europe/Berlin'],
  ['Nowhere/Town', 'UTC'],
])('a machine with TZ=%s', (given, expected) => {
  const before = process.env['TZ']
  try {
    process.env['TZ'] = given
    expect(machineTimeZone()).toContain(expected)
  } finally {
    if (before === undefined) delete process.env['TZ']
    else process.env['TZ'] = before
  }
})
