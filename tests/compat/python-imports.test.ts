/** What Python actions import by the names of StackStorm, used as its packs do, on a server. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startScript } from '../../src/runners/python/interpreters.ts'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { type ExecutionAnswer, finalStatuses, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

/** What packs import, the commonest first: modules, and names in them. Counted in the packs that are published. */
const imported = `
st2common.runners.base_action:Action st2reactor.sensor.base:PollingSensor st2client.client:Client
st2reactor.sensor.base:Sensor st2actions.runners.pythonrunner:Action
st2client.models:KeyValuePair st2common:log st2common.util:isotime st2common.constants.pack:MANIFEST_FILE_NAME
st2common.content.utils:get_packs_base_paths st2client.models.keyvalue:KeyValuePair st2common.content:utils
st2common.util.pack:get_pack_metadata st2common.util:jinja st2actions.runners:pythonrunner
st2common.exceptions.action:InvalidActionParameterException st2common.util.shell:run_command st2client
st2client.commands.action st2client.models st2client.models.action_alias:ActionAliasMatch
st2common.constants.pack:PACK_VERSION_SEPARATOR st2common.constants.pack:SYSTEM_PACK_NAMES
st2common.content.utils:get_pack_base_path st2common.util.shell:quote_unix st2common.util.date
st2client.base:BaseCLIApp st2client.commands.action:LIVEACTION_STATUS_CANCELING
st2client.commands.action:LIVEACTION_STATUS_REQUESTED st2client.commands.action:LIVEACTION_STATUS_RUNNING
st2client.commands.action:LIVEACTION_STATUS_SCHEDULED st2client.commands.resource:ResourceNotFoundError
st2client.models.action:Execution st2client.models.aliasexecution:ActionAliasExecution
st2client.models.datastore:KeyValuePair st2common st2common.bootstrap.sensorsregistrar
st2common.exceptions.db:StackStormDBObjectNotFoundError st2common.models.db:db_setup
st2common.persistence.action:Action st2common.persistence.action:ActionAlias st2common.persistence.pack:Config
st2common.persistence.pack:ConfigSchema st2common.persistence.pack:Pack st2common.persistence.policy:Policy
st2common.persistence.rule:Rule st2common.persistence.sensor:SensorType st2common.persistence.trigger:Trigger
st2common.persistence.trigger:TriggerType st2common.runners.paramiko_ssh:ParamikoSSHClient
st2common.runners.utils:get_logger_for_python_runner_action st2common.script_setup
st2common.services.packs:get_pack_from_index st2common.services.packs:search_pack_index
st2common.services:coordination st2client.models:LiveAction
st2common.services.triggers:cleanup_trigger_db_for_rule st2common.util.pack:get_pack_warnings
st2common.util.pack_management:download_pack st2common.util.pack_management:get_repo_url
st2common.util.virtualenvs:setup_pack_virtualenv
`
  .trim()
  .split(/\s+/)

it('each name that packs import is there, and none takes another module along that Python lacks', () => {
  const program =
    'import importlib, json, sys\nsys.path.insert(0, sys.argv[1])\nfailed = {}\n' +
    'for row in json.load(sys.stdin):\n    module, _, name = row.partition(":")\n    try:\n' +
    '        exec("from %s import %s" % (module, name) if name else "import " + module)\n' +
    '    except Exception as problem:\n        failed[row] = str(problem)\njson.dump(failed, sys.stdout)\n'
  const { stdout, stderr } = spawnSync('python3', ['-S', '-c', program, dirname(fileURLToPath(startScript))], {
    input: JSON.stringify(imported),
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({
    'st2common.runners.paramiko_ssh:ParamikoSSHClient': expect.stringMatching(/unavailable in svc. Run core.remote/),
  })
})

/** What packs use of what they import. */
const used = {
  'st2client.client:Client': `actions actionaliases aliasexecutions apikeys config_schemas configs executions get_user_info
    inquiries keys liveactions packs policies policytypes ruleenforcements rules runners sensors tokens trace
    triggerinstances triggertypes webhooks workflows`,
  'st2client.models.core:ResourceManager': `create delete delete_by_id get_all get_by_id get_by_name get_by_ref_or_id
    get_property query query_with_count update`,
  'st2client.models.action:ExecutionManager': 'get_children get_output pause re_run resume',
  'st2client.models.action:ActionManager': 'clone delete_action get_entrypoint',
  'st2client.models:KeyValuePair':
    'deserialize get_alias get_display_name get_plural_name get_url_path_name serialize to_dict',
  'st2client.models.action_alias:ActionAliasManager': 'match',
  'st2client.models.aliasexecution:ActionAliasExecutionManager': 'match_and_execute',
  'st2client.models.others:InquiryManager': 'respond',
  'st2client.base:BaseCLIApp': 'get_client',
  'svc.action_service:ActionService': `datastore_service delete_value get_api_client _get_api_client get_logger get_user_info
    get_value list_values set_value`,
  'svc.sensor_service:SensorService': `datastore_service delete_value dispatch dispatch_with_context get_logger get_user_info
    get_value list_values set_value`,
  'st2reactor.sensor.base:PollingSensor': `add_trigger cleanup get_poll_interval poll remove_trigger run set_poll_interval
    setup update_trigger`,
  'st2common.util:isotime': 'format parse validate',
  'st2common.util:date': 'add_utc_tz convert_to_utc get_datetime_utc_now parse',
  'st2common.util:jinja': 'convert_jinja_to_raw_block get_jinja_environment is_jinja_expression render_values',
  'st2common.content:utils': `get_pack_base_path get_pack_directory get_pack_file_abs_path get_packs_base_paths
    get_system_packs_base_path`,
  'st2common:log': 'AUDIT getLogger',
  'st2common.services:coordination': 'coordinator_setup coordinator_teardown get_coordinator',
  'st2client.commands:action': `LIVEACTION_COMPLETED_STATES LIVEACTION_STATUS_ABANDONED LIVEACTION_STATUS_CANCELED
    LIVEACTION_STATUS_FAILED LIVEACTION_STATUS_PAUSED LIVEACTION_STATUS_SUCCEEDED LIVEACTION_STATUS_TIMED_OUT`,
}

it('each member that packs use of these is there', () => {
  const program =
    'import json, sys\nsys.path.insert(0, sys.argv[1])\nmissing = []\n' +
    'for row, names in json.load(sys.stdin).items():\n    module, _, name = row.partition(":")\n' +
    '    exec("from %s import %s as found" % (module, name))\n' +
    '    missing += [row + "." + one for one in names.split() if not hasattr(found, one)]\njson.dump(missing, sys.stdout)\n'
  const { stdout, stderr } = spawnSync('python3', ['-S', '-c', program, dirname(fileURLToPath(startScript))], {
    input: JSON.stringify(used),
    encoding: 'utf8',
  })
  expect([stderr, stdout]).toEqual(['', '[]'])
})

it('what needs a package that is missing says so', () => {
  const program =
    'import sys\nsys.path.insert(0, sys.argv[1])\nfrom st2common.util import jinja, pack\n' +
    'for use in (jinja.get_jinja_environment, lambda: pack.get_pack_metadata(sys.argv[2])):\n    try:\n        use()\n' +
    '    except ImportError as problem:\n        print(problem)\n'
  const folder = join(import.meta.dirname, 'packs', 'importing')
  const { stdout, stderr } = spawnSync('python3', ['-S', '-c', program, dirname(fileURLToPath(startScript)), folder], {
    encoding: 'utf8',
  })
  expect([stderr, stdout.split('\n')]).toEqual([
    '',
    [expect.stringMatching(/add jinja2 to the requirements.txt/), expect.stringMatching(/PyYAML: add it to/), ''],
  ])
})

type PythonExecution = ExecutionAnswer & { result: { result: unknown; stderr: string } }

/** Starts a server with the pack for the tests around. @returns what runs an action of it */
function withServer(settings: Record<string, string>): {
  (name: string, parameters?: object): Promise<PythonExecution>
  password(): string
} {
  let server: TestApp
  let headers: Record<string, string> = {}

  beforeAll(async () => {
    server = await createTestApp({
      settings: {
        'auth.enable': 'True',
        'auth.mode': 'standalone',
        'packs.enable_common_libs': 'True',
        ...settings,
      },
    })
    headers = await signIn(server, 'admin', firstPassword(server.basePath))
    const from = join(import.meta.dirname, 'packs', 'importing')
    cpSync(from, join(server.basePath, 'packs', 'importing'), { recursive: true })
    await server.call('POST', '/v1/packs/register', { packs: ['importing'] }, headers)
  })
  afterAll(() => server.stop())

  const run = async (name: string, parameters = {}): Promise<PythonExecution> => {
    const body = { action: `importing.${name}`, parameters }
    const made = await server.call<ExecutionAnswer>('POST', '/v1/executions', body, headers)
    expect([made.status, made.text]).toEqual([201, expect.any(String)])
    return (await waitFor(
      `the end of ${name}`,
      async () => {
        const { body: found } = await server.call<ExecutionAnswer>(
          'GET',
          `/v1/executions/${made.body.id}`,
          undefined,
          headers,
        )
        return finalStatuses.includes(found.status) && found
      },
      60_000,
    )) as never // of a Python action
  }
  return Object.assign(run, { password: () => firstPassword(server.basePath) })
}

describe('with compat.stackstorm', () => {
  const run = withServer({ 'compat.stackstorm': 'True' })

  it('records have the names of StackStorm', async () => {
    const { status, result } = await run('names')
    expect([status, result.stderr, result.result]).toEqual([
      'succeeded',
      '',
      {
        made: 'core.st2.CronTimer',
        found: ['daily'],
        type: 'core.st2.webhook',
        scope: 'st2kv.system',
        value: '1',
      },
    ])
  })

  it('the stream can be listened to', async () => {
    const { status, result } = await run('stream')
    expect([status, result.stderr, result.result]).toEqual([
      'succeeded',
      '',
      { ended: 'succeeded', action: 'core.echo', refused: 401 },
    ])
  })
})

/** With a pack that can be installed, and an index of packs. */
function makeSources(): { pack: string; index: string; remove: () => void } {
  const folder = makeFolder()
  const { path } = folder
  const pack = join(path, 'tiny')
  mkdirSync(pack)
  writeFileSync(join(pack, 'pack.yaml'), 'name: tiny\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: a@b.c\n')
  writeFileSync(join(pack, 'config.schema.yaml'), 'place: {type: string}\n')
  const packs = {
    aws: { name: 'aws', version: '2.0.0', description: 'The Cloud of a shop', keywords: ['sea', 'cloud'] },
    azure: { name: 'azure', description: 'Another cloud', keywords: ['seaside'] },
    zone: { ref: 'zone', name: 'Time zones, not aws', description: 'Clocks' },
  }
  writeFileSync(join(path, 'index.json'), JSON.stringify({ packs }))
  return { pack: `file://${pack}`, index: `file://${join(path, 'index.json')}`, remove: () => folder.remove() }
}

describe('on a server', () => {
  const sources = makeSources()
  afterAll(() => sources.remove())
  const run = withServer({ 'content.index_url': sources.index })

  it.each<[string, unknown]>([
    [
      'keys',
      {
        id: 'importing.a',
        value: '2',
        decrypted: 's3cret',
        is_hidden: true,
        user: 'mine',
        missing: null,
        names: ['importing.a', 'importing.b/ä'],
        by_id: 'importing.a',
        old: ['2'],
        deleted: [true, true, true, true],
        service: 'y',
        pack: 'importing',
      },
    ],
    [
      'executions',
      {
        was: true,
        ended: ['succeeded', 'hello', 'core.echo'],
        again: 'again',
        output: 'hello\n',
        canceled: true,
        found: true,
        count: 2,
        noop: 'core.noop',
        none: null,
        paused: expect.stringMatching(/^paus(ing|ed)$/),
        children: [],
        text: expect.stringMatching(/^<Execution status=succeeded/),
      },
    ],
    [
      'records',
      {
        rule: [true, false, 'changed'],
        made: ['importing.made', true, null],
        actions: ['importing.addresses'],
        by_hand: [200, 'core.echo'],
        entry_point: 'from st2cl',
        error: [400, 400, expect.stringMatching(/^400 Bad Request\nMESSAGE: .*trigger/)],
        not_found: 'no such action',
        runner: 'noop',
        packs: ['importing'],
        enforcements: [],
        registered: 1,
        policies: [],
        triggers: 'svc.webhook',
        webhook: true,
        me: 'admin',
      },
    ],
    [
      'addresses',
      {
        own: Array.from({ length: 7 }, () => true),
        works: Array.from({ length: 7 }, () => 'admin'),
        other: [
          {
            base: 'http://other.example',
            api: 'http://other.example:9101/v1',
            auth: 'http://other.example:9100',
            stream: 'http://other.example:9102/v1',
          },
          null,
        ],
        error: expect.stringContaining('could not reach the server'),
        elsewhere: null,
      },
    ],
    [
      'content',
      {
        folder: true,
        manifest: true,
        paths: true,
        file: true,
        none: null,
        warnings: expect.stringContaining('Python 2 only'),
        repo: [
          ['https://github.com/owner/name', '1.0'],
          ['https://x/y.git', null],
        ],
        system: true,
        virtualenv: null,
      },
    ],
    [
      'elsewhere',
      [
        /persistence.rule.Rule.get_by_ref .*Client\(\).rules \(GET \/v1\/rules\)/,
        /persistence.pack.Pack.get_all .*GET \/v1\/packs/,
        /db_setup is unavailable in svc. Use the API/,
        /script_setup.setup is unavailable in svc. Use the API/,
        /register_sensors is unavailable.*POST \/v1\/packs\/register/,
        /download_pack is unavailable.*packs.install/,
        /cleanup_trigger_db_for_rule is unavailable.*svc deletes triggers that no rule uses/,
        /paramiko_ssh is unavailable in svc. Run core.remote/,
      ].map((text): unknown => expect.stringMatching(text)),
    ],
    [
      'siblings',
      [
        'lib',
        'lib',
        'beside',
        'hammer',
        'hammer',
        'inner',
        'inner',
        'deeper',
        'hello lib',
        [1],
        '00000000-0000-0000-0000-000000000001',
      ],
    ],
    ['copy', [[2], true]],
    ['aliases', ['core.echo', 'please say {{ message }}', 'succeeded', 'hello', 'core.echo', 'importing.say']],
    ['no_base', 'admin'],
    ['common', 'of the pack'],
    [
      'configured',
      {
        missing: 'The configuration of the pack "importing" has no "nope": set it with `svc pack config importing`.',
        caught: ['KeyError', 'ValueError'],
        usual: ['PackConfigDict', null, false, {}, {}],
        changed: { more: 1 },
        copies: [
          'The configuration of the pack "importing" has no "nope": set it with `svc pack config importing`.',
          2,
        ],
      },
    ],
    ['locks', { held: ['False', 'True', 'False'], thread: [false], freed: 'True' }],
    ['inspecting', [[], [expect.objectContaining({ message: expect.stringContaining('nowhere') as unknown })]]],
  ])('works: %s', async (name, expected) => {
    const { status, result } = await run(name)
    expect([status, result.stderr, result.result]).toEqual(['succeeded', '', expected])
  })

  it('managers of the client work', async () => {
    const { status, result } = await run('managers', { source: sources.pack, password: run.password() })
    expect([status, result.stderr, result.result]).toEqual([
      'succeeded',
      '',
      {
        inquiry: [true, true, 400, { sure: true }, 'succeeded'],
        token: ['admin', 'admin', 401, 'admin', true, null],
        services: [true, [['api', true]]],
        clone: ['default.copied', 400, 'default.copied', true, null],
        index: {
          search: ['aws', 'azure'],
          one: '2.0.0',
          none: [],
          from_index: ['2.0.0', null],
          searched: [['aws'], ['aws', 'azure'], ['azure'], ['aws', 'zone'], ['aws']],
        },
        packs: ['succeeded', { place: 'north' }, { place: 'north' }, ['place'], 'succeeded', null],
        again: [true, true],
      },
    ])
  })

  it('helpers work, and what loggers write is the output of the action', async () => {
    const { result } = await run('helpers')
    expect(result).toMatchObject({
      stderr:
        'svc.actions.python.helpers: INFO     from a module\nsvc.actions.python.helpers: AUDIT    audited\n' +
        'svc.actions.python.Helpers: AUDIT    by the action\nsvc.actions.python.Other: WARNING  of another name\n',
      result: {
        shell: [3, 'out\n', 'err\n', "'a b'"],
        time: [
          '2026-01-02T03:04:05.678000+00:00',
          '2026-01-02T03:04:05Z',
          '2026-01-02T03:04:05+02:00',
          '2026-01-02T00:00:00.000000+00:00',
          false,
          '2026-01-02T03:04:05+00:00',
          true,
        ],
        error: ['InvalidActionParameterException', 'no such host'],
      },
    })
  })
})
