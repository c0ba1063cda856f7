/** Sensors in Python, as packs have them (contract 05, 5.10). */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  instancesOf,
  outputOf,
  register,
  sensorOf,
  waitForInstances,
  waitForOutput,
  waitForState,
  writePack,
} from './support.ts'

const passive = `
import time
from st2common import log as logging
from st2common.runners.base_action import Action
from st2reactor.sensor.base import Sensor

LOG = logging.getLogger(__name__)

class Helper(Action):
    def run(self):
        self.logger.info("of an action")

class Passive(Sensor):
    def __init__(self, sensor_service, config=None):
        super(Passive, self).__init__(sensor_service=sensor_service, config=config)
        self._logger = self._sensor_service.get_logger(name=self.__class__.__name__)

    def setup(self):
        self._logger.info("set up with %s", self._config)
        LOG.info("of a module")
        Helper().run()
        self.sensor_service.datastore_service.get_logger("keys").audit("of a service")
        try:
            self.config["nope"]
        except KeyError as problem:
            LOG.warning("%s: %s", type(self.config).__name__, problem)
        print("printed")
        # As some sensors do.
        self.config = dict(self._config)
        self.sensor_service = self._sensor_service

    def run(self):
        self.sensor_service.dispatch(trigger="py.seen", payload={"n": 1, "config": self.config})
        self.sensor_service.dispatch("py.seen", {"n": "wrong"})
        self.sensor_service.dispatch("py.unknown", {})
        self.sensor_service.dispatch("py.seen", {"n": object()})
        self.sensor_service.dispatch("py.seen", {"text": "x" * (1 << 20)})
        self.sensor_service.dispatch("py.seen", {"text": u"a \udcff b"})
        self.sensor_service.dispatch(trigger="py.seen", payload={"n": 2}, trace_tag="a tag")
        self.sensor_service.dispatch_with_context("py.seen", {"n": 3}, {"trace_tag": "a tag"})
        while True:
            time.sleep(0.05)

    def cleanup(self):
        self._sensor_service.dispatch("py.seen", {"n": 99})

    def add_trigger(self, trigger):
        pass

    def update_trigger(self, trigger):
        pass

    def remove_trigger(self, trigger):
        pass
`

const polling = `
from st2reactor.sensor.base import PollingSensor

class Polling(PollingSensor):
    def __init__(self, sensor_service, config=None, poll_interval=None):
        super(Polling, self).__init__(sensor_service=sensor_service, config=config, poll_interval=poll_interval)

    def setup(self):
        self.user = self._sensor_service.get_user_info()["username"]

    def poll(self):
        service = self._sensor_service
        count = int(service.get_value("count") or 0) + 1
        service.dispatch(trigger="py.polled", payload={"count": count, "interval": self._poll_interval, "user": self.user})
        service.set_value("count", count)
        assert service.datastore_service.get_value("count", local=True) == str(count)
        self.set_poll_interval(0.05 if count < 3 else 3600)

    def cleanup(self): pass
    def add_trigger(self, trigger): pass
    def update_trigger(self, trigger): pass
    def remove_trigger(self, trigger): pass
`

/** No base class, other names of parameters, and eventlet, which is not installed. */
const own = `
import eventlet

eventlet.monkey_patch(os=True, select=True, socket=True, thread=True, time=True)

class Own(object):
    def __init__(self, service, configuration):
        self.service = service

    def setup(self):
        pass

    def add_trigger(self, trigger):
        if trigger["type"] == "py.told":
            return
        self.service.dispatch("py.told", {"what": "add", "parameters": trigger["parameters"], "type": trigger["type"]})
        self.service.dispatch(trigger, {"text": "from " + trigger["parameters"]["place"]})

    def update_trigger(self, trigger):
        self.service.dispatch("py.told", {"what": "update", "parameters": trigger["parameters"], "type": trigger["type"]})

    def remove_trigger(self, trigger):
        self.service.dispatch("py.told", {"what": "remove", "parameters": trigger["parameters"], "type": trigger["type"]})

    def run(self):
        while True:
            eventlet.sleep(0.05)

    def cleanup(self):
        pass
`

const yaml = (className: string, file: string, more = ''): string =>
  `class_name: ${className}\nentry_point: ${file}\n${more}`

const ruleFor = (name: string, type: string, parameters: object) => ({
  name,
  pack: 'default',
  enabled: true,
  trigger: { type, parameters },
  action: { ref: 'core.noop' },
})

let server: TestApp

beforeAll(async () => {
  server = await createTestApp()
  writePack(server.basePath, 'py', {
    'sensors/passive.py': passive,
    'sensors/passive.yaml': yaml(
      'Passive',
      'passive.py',
      `trigger_types:
  - name: seen
    payload_schema: {type: object, properties: {n: {type: integer}}}
`,
    ),
    'sensors/polling.py': polling,
    'sensors/polling.yaml': yaml('Polling', 'polling.py', 'poll_interval: 7\ntrigger_types: [{name: polled}]\n'),
    'sensors/own.py': own,
    'sensors/own.yaml': yaml(
      'Own',
      'own.py',
      `trigger_types:
  - name: told
  - name: watched
    parameters_schema: {type: object, properties: {place: {type: string}}, additionalProperties: false}
`,
    ),
    'config.schema.yaml': 'place: {type: string}\nkey: {type: string, secret: true}\n',
  })
  await server.call('PUT', '/v1/keys/word', { name: 'word', value: 'from the datastore' })
  mkdirSync(join(server.basePath, 'configs'), { recursive: true })
  writeFileSync(join(server.basePath, 'configs', 'py.yaml'), 'place: "{{ svckv.system.word }}"\nkey: a secret value\n')
  await register(server, 'py')
})

afterAll(() => server.stop())

describe('a passive sensor', () => {
  it('5.10 dispatches with its configuration, trace tags and logs; wrong dispatches are dropped', async () => {
    await waitForState(server, 'py.Passive', 'running')
    const instances = await waitFor('the dispatches', async () => {
      const found = await instancesOf(server, 'py.seen')
      return found.some(({ payload }) => payload['config'] !== undefined && payload['n'] === 1) &&
        found.filter(({ payload }) => payload['n'] === 3).length > 0
        ? found
        : undefined
    })
    expect(instances.find(({ payload }) => payload['n'] === 1)?.payload['config']).toEqual({
      place: 'from the datastore',
      key: 'a secret value',
    })
    expect(instances.map(({ payload }) => payload['text'])).toContain('a � b')
    const [second] = instances.filter(({ payload }) => payload['n'] === 2)
    const [third] = instances.filter(({ payload }) => payload['n'] === 3)
    expect(second?.trace_id).toBe(third?.trace_id)
    const trace = await server.call<{ trace_tag: string }>('GET', `/v1/traces/${second?.trace_id}`)
    expect(trace.body.trace_tag).toBe('a tag')
    const output = await waitForOutput(server, 'py.Passive', 'no trigger "py.unknown"')
    expect(output).toContain('svc.sensors.Passive.Passive: INFO     set up with')
    expect(output).toContain('svc.sensors.passive: INFO     of a module\n')
    expect(output).toContain('svc.sensors.Helper: INFO     of an action\n')
    expect(output).toContain('svc.sensors.keys: AUDIT    of a service\n')
    const missing = 'The configuration of the pack "py" has no "nope": set it with `svc pack config py`.'
    expect(output).toContain(`svc.sensors.passive: WARNING  PackConfigDict: ${missing}\n`)
    expect(output).toContain('printed\n')
    expect(output).toContain('the payload does not fit trigger type "py.seen"')
    expect(output).toContain('the payload cannot be sent: object is not JSON data (trigger py.seen)')
    expect(output).toMatch(/cannot be sent: it has \d+ bytes, 1048576 are allowed \(trigger py\.seen\)/)
    expect(output).not.toContain('a secret value')
    const { runtime } = await sensorOf(server, 'py.Passive')
    expect(runtime).toMatchObject({ state: 'running', node: 'sensornode1', pid: expect.any(Number), dropped: 4 })
    expect(runtime.memory_bytes).toBeGreaterThan(1_000_000)
    const environment = readFileSync(`/proc/${runtime.pid}/environ`, 'utf8')
    expect(environment).toMatch(/\0?SVC_ACTION_EXECUTION_ID=[0-9a-f]{24}\0/)
  })

  it('5.10 is stopped when it is disabled, with its cleanup, and started when it is enabled', async () => {
    const { runtime } = await waitForState(server, 'py.Passive', 'running')
    await server.call('PUT', '/v1/sensortypes/py.Passive', { enabled: false })
    await waitForState(server, 'py.Passive', 'disabled')
    expect(() => process.kill(runtime.pid ?? 0, 0)).toThrow('ESRCH')
    expect((await instancesOf(server, 'py.seen')).filter(({ payload }) => payload['n'] === 99)).not.toEqual([])
    await server.call('PUT', '/v1/sensortypes/py.Passive', { enabled: true })
    const again = await waitForState(server, 'py.Passive', 'running')
    expect(again.runtime.pid).not.toBe(runtime.pid)
  })

  it('5.10 starts again when its file or its configuration changes, not when another file does', async () => {
    // A sensor that is stopped between a dispatch and its value repeats the dispatch.
    await waitForInstances(server, 'py.polled', 3)
    const first = (await waitForState(server, 'py.Passive', 'running')).runtime.pid
    await register(server, 'py')
    const changedPid = (before: number | undefined) =>
      waitFor('another process', async () => {
        const { state, pid } = (await sensorOf(server, 'py.Passive')).runtime
        return state === 'running' && pid !== before ? pid : undefined
      })
    writePack(server.basePath, 'py', { 'README.md': 'Other.' })
    await register(server, 'py')
    expect((await sensorOf(server, 'py.Passive')).runtime.pid).toBe(first)
    writeFileSync(join(server.basePath, 'packs', 'py', 'sensors', 'passive.py'), `${passive}\n# changed\n`)
    await register(server, 'py')
    const second = await changedPid(first)
    await server.call('PUT', '/v1/configs/py', { place: 'elsewhere', key: 'a secret value' })
    await changedPid(second)
  })
})

describe('a polling sensor', () => {
  it('5.10 polls, and keeps its values in its namespace', async () => {
    const instances = await waitForInstances(server, 'py.polled', 3)
    expect(instances.slice(0, 3).map(({ payload }) => payload)).toEqual([
      { count: 1, interval: 7, user: expect.any(String) },
      { count: 2, interval: expect.anything(), user: expect.any(String) },
      { count: 3, interval: expect.anything(), user: expect.any(String) },
    ])
    const key = await server.call('GET', `/v1/keys/${encodeURIComponent('py.Polling:count')}`)
    expect(key.body).toMatchObject({ scope: 'svckv.system' })
  })
})

describe('a class of its own', () => {
  it('5.10 gets the triggers of its types, and names one when it dispatches', async () => {
    await waitForState(server, 'py.Own', 'running')
    const rule = (await server.call('POST', '/v1/rules', ruleFor('here', 'py.watched', { place: 'here' }))).body
    const told = (count: number) => waitForInstances(server, 'py.told', count)
    expect((await told(1)).map(({ payload }) => payload)).toEqual([
      { what: 'add', parameters: { place: 'here' }, type: 'py.watched' },
    ])
    const ref = (rule['trigger'] as { ref: string }).ref
    const [instance] = await waitForInstances(server, ref, 1)
    expect(instance?.payload).toEqual({ text: 'from here' })
    await waitFor('the rule to match', async () => {
      const { body } = await server.call<unknown[]>('GET', '/v1/ruleenforcements?rule_ref=default.here')
      return body.length === 1
    })
    // At the start it gets those that there are.
    await server.call('PUT', '/v1/sensortypes/py.Own', { enabled: false })
    await waitForState(server, 'py.Own', 'disabled')
    await server.call('PUT', '/v1/sensortypes/py.Own', { enabled: true })
    expect((await told(2)).map(({ payload }) => payload['what'])).toEqual(['add', 'add'])
    await server.call('DELETE', '/v1/rules/default.here')
    expect((await told(3)).map(({ payload }) => payload['what'])).toEqual(['add', 'add', 'remove'])
    expect(await outputOf(server, 'py.Own')).not.toContain('Traceback')
  })
})
