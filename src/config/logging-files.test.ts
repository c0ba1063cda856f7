import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../tests/helpers/folders.ts'
import { loadConfig } from './load.ts'
import { readLogFiles, type LogFiles } from './logging-files.ts'

let folder: TemporaryFolder
beforeEach(() => (folder = makeFolder()))
afterEach(() => folder.remove())

const at = (name: string): string => join(folder.path, name)

/** With these options, and these texts of the files that they name as `<name>.conf`. */
function read(options: string, texts: Record<string, string> = {}): LogFiles {
  for (const [name, text] of Object.entries(texts)) writeFileSync(at(`${name}.conf`), text)
  writeFileSync(at('svc.conf'), options)
  return readLogFiles(loadConfig({ files: ['svc.conf'], env: {}, cwd: folder.path }))
}

/** As the packages of the incumbent bring it. */
const usual = (process: string, level = 'INFO'): string => `[loggers]
keys=root

[handlers]
keys=consoleHandler, fileHandler, auditHandler

[formatters]
keys=simpleConsoleFormatter, verboseConsoleFormatter, gelfFormatter

[logger_root]
level=${level}
handlers=consoleHandler, fileHandler, auditHandler

[handler_consoleHandler]
class=StreamHandler
level=INFO
formatter=simpleConsoleFormatter
args=(sys.stdout,)

[handler_fileHandler]
class=svccommon.log.FormatNamedFileHandler
level=DEBUG
formatter=verboseConsoleFormatter
args=("/var/log/svc/${process}.log",)

[handler_auditHandler]
class=svccommon.log.FormatNamedFileHandler
level=AUDIT
formatter=gelfFormatter
args=('/var/log/svc/${process}.audit.log',)

[formatter_simpleConsoleFormatter]
class=svccommon.logging.formatters.ConsoleLogFormatter
format=%(asctime)s %(levelname)s [-] %(message)s
datefmt=

[formatter_verboseConsoleFormatter]
class=svccommon.logging.formatters.ConsoleLogFormatter
format=%(asctime)s %(thread)s %(levelname)s %(module)s [-] %(message)s
datefmt=

[formatter_gelfFormatter]
class=svccommon.logging.formatters.GelfLogFormatter
format=%(message)s
`

const noAudit = '[log]\naudit_file =\n'
const byDefault = { maxBytes: 104_857_600, backupCount: 10 }

describe('log files', () => {
  it('are those of section log', () => {
    const { files, warnings } = read('[log]\nfile = logs/svc.log\nformat = json\nlevel = DEBUG\nmax_bytes = 1000\n')
    const limits = { maxBytes: 1000, backupCount: 10 }
    expect(files).toEqual([
      { path: at('svc_data/logs/svc.log'), format: 'json', takes: [{ level: 'DEBUG' }], ...limits },
      {
        path: at('svc_data/logs/svc.audit.log'),
        format: 'gelf',
        takes: [{ level: 'AUDIT' }],
        ...limits,
        keptSeconds: 90 * 86_400,
      },
    ])
    expect(warnings).toEqual([])
  })

  it('are those that the handlers of each part name', () => {
    const options = `${noAudit}[api]\nlogging = api.conf\n[rulesengine]\nlogging = rules.conf\n`
    const { files, warnings } = read(options, { api: usual('svcapi'), rules: usual('svcrulesengine', 'DEBUG') })
    const file = (name: string, format: string, level: string, part: string): unknown => ({
      path: `/var/log/svc/${name}.log`,
      format,
      takes: [{ level, part }],
      ...byDefault,
      ...(level === 'AUDIT' ? { keptSeconds: 90 * 86_400 } : {}),
    })
    expect(files).toEqual([
      file('svcapi', 'text', 'INFO', 'api'),
      file('svcapi.audit', 'gelf', 'AUDIT', 'api'),
      file('svcrulesengine', 'text', 'DEBUG', 'rulesengine'),
      file('svcrulesengine.audit', 'gelf', 'AUDIT', 'rulesengine'),
    ])
    expect(warnings).toEqual([])
  })

  it('may be shared', () => {
    const options =
      '[log]\naudit_file = /var/log/svc/svc.audit.log\n[api]\nlogging = a.conf\n[auth]\nlogging = a.conf\n'
    const { files } = read(options, { a: usual('svc') })
    expect(files.map(({ path, takes }) => [path, takes])).toEqual([
      [
        '/var/log/svc/svc.audit.log',
        [{ level: 'AUDIT' }, { level: 'AUDIT', part: 'api' }, { level: 'AUDIT', part: 'auth' }],
      ],
      [
        '/var/log/svc/svc.log',
        [
          { level: 'INFO', part: 'api' },
          { level: 'INFO', part: 'auth' },
        ],
      ],
    ])
  })

  it('have the limits of a RotatingFileHandler, and the pid in their names', () => {
    const text = `[logger_root]\nhandlers = a, b\n[handler_a]\nclass = handlers.RotatingFileHandler\nargs = ("/x/{pid}.log", "a", 5000, 3)\n[handler_b]\nclass = logging.handlers.RotatingFileHandler\nargs = ('/x/b.log', )\n`
    const { files } = read(`${noAudit}[api]\nlogging = a.conf`, { a: text })
    const takes = [{ level: 'WARNING', part: 'api' }]
    expect(files).toEqual([
      { path: `/x/${process.pid}.log`, format: 'text', takes, maxBytes: 5000, backupCount: 3 },
      { path: '/x/b.log', format: 'text', takes, ...byDefault },
    ])
  })

  it('that do not exist as configurations are told, and change nothing', () => {
    const { files, warnings } = read(`${noAudit}[auth]\nlogging = /etc/svc/no-such.conf`)
    expect(files).toEqual([])
    expect(warnings).toEqual([
      'auth.logging: /etc/svc/no-such.conf does not exist, so this component has no log file; remove the option and use log.file (svc.conf:4)',
    ])
  })

  it('tell what has no counterpart', () => {
    const text = `[loggers]\nkeys = root, requests\n[logger_root]\nhandlers = s, t\n[handler_s]\nclass = handlers.SysLogHandler\nargs = (("127.0.0.1", 514), handlers.SysLogHandler.LOG_USER)\n[handler_t]\nclass = handlers.TimedRotatingFileHandler\nargs = ("/x/t.log", "midnight")\n`
    const { files, warnings } = read(`${noAudit}[api]\nlogging = a.conf`, { a: text })
    expect(files.map(({ path }) => path)).toEqual(['/x/t.log'])
    expect(warnings).toEqual([
      expect.stringMatching(/^api\.logging: .*a\.conf:2: the loggers requests are not supported; .*log\.excludes/),
      expect.stringMatching(/a\.conf:6: handler_s: the class "handlers\.SysLogHandler" is not supported; .*log\.file/),
      expect.stringMatching(/a\.conf:9: handler_t: rotation by time is not supported; set log\.max_bytes/),
    ])
  })

  it.each([
    ['no INI file', 'nonsense', /a\.conf:1: "nonsense" is neither a \[section\] nor "option = value"/],
    ['no root logger', '[loggers]\nkeys=root\n', /a\.conf:1: the section \[logger_root\] is missing/],
    ['an unknown handler', '[logger_root]\nhandlers=x\n', /a\.conf:2: handlers: the section \[handler_x\] is missing/],
    ['an unknown level', '[logger_root]\nlevel=LOUD\n', /a\.conf:2: logger_root\.level: must be one of .*, not "LOUD"/],
    [
      'a file without a path',
      '[logger_root]\nhandlers=x\n[handler_x]\nclass=FileHandler\nargs=(os.environ["X"],)\n',
      /a\.conf:5: handler_x\.args: must start with a quoted file path/,
    ],
    [
      'an unknown form',
      '[logger_root]\nhandlers=x\n[handler_x]\nclass=FileHandler\nargs=("/x",)\nformatter=f\n',
      /a\.conf:6: handler_x\.formatter: the section \[formatter_f\] is missing/,
    ],
  ])('stop the start when a configuration is wrong: %s', (_what, text, problem) => {
    const reading = (): LogFiles => read('[api]\nlogging = a.conf', { a: text })
    expect(reading).toThrow(problem)
    expect(reading).toThrow(/^ {2}api\.logging: .*\(svc\.conf:2\)$/m)
  })

  it('cannot be two things', () => {
    mkdirSync(at('folder.conf'))
    expect(() => read('[api]\nlogging = folder.conf')).toThrow(/api\.logging: .*folder\.conf is a directory/)
    const options = '[log]\nfile = /x/a.log\naudit_file = /x/a.log\n'
    expect(() => read(options)).toThrow(
      'log.audit_file: /x/a.log has the format gelf here but text in log.file; use separate files',
    )
  })
})
