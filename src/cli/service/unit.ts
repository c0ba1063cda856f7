/** The files of `svc service install`: the systemd unit and its configuration (docs/install.md). */

/** The account that the service runs as; commands of actions run as it, too, since it is `system_user.user` by default. */
export const accountName = 'svc'
export const unitName = 'svc.service'

export const paths = {
  program: '/usr/local/bin/svc',
  unit: `/etc/systemd/system/${unitName}`,
  configuration: '/etc/svc/svc.conf',
  state: '/var/lib/svc',
  logs: '/var/log/svc',
} as const

/** Differs from the example in what a service of the system needs. */
const settings: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  system: { base_path: paths.state },
  auth: { enable: 'True' },
  log: { audit_file: `${paths.logs}/svc.audit.log` },
}

/** @param example `svc.conf.example` @throws Error when an option that is set here is not in it */
export function makeConfiguration(example: string): string {
  const left = new Set(
    Object.entries(settings).flatMap(([name, options]) => Object.keys(options).map((of) => `${name}.${of}`)),
  )
  let section = ''
  const lines = example.split('\n').map((line) => {
    section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section
    const option = /^#(\w+) =/.exec(line)?.[1] ?? ''
    const value = settings[section]?.[option]
    if (value === undefined) return line
    left.delete(`${section}.${option}`)
    return `${option} = ${value}`
  })
  if (left.size > 0) throw new Error(`svc.conf.example has no option ${[...left].join(', ')}`)
  return lines.join('\n')
}

/**
 * Hardened as far as commands of actions bear it, and no version of systemd since 247 finds an option in it that it does not
 * know. `Type=notify-reload` would need 253. @program@ stands for the executable.
 */
const unit = `[Unit]
Description=svc, event-driven automation server
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=@program@ serve --config-file ${paths.configuration}
ExecReload=/bin/kill -HUP $MAINPID
User=${accountName}
Group=${accountName}
WorkingDirectory=${paths.state}
StateDirectory=svc
StateDirectoryMode=0700
LogsDirectory=svc
LogsDirectoryMode=0750
ConfigurationDirectory=svc
UMask=0077
# Actions read and write text as UTF-8.
Environment=LANG=C.UTF-8

# Migrating a large database can take long.
TimeoutStartSec=15min
# Running actions get actionrunner.shutdown_grace_seconds (10), then 5 seconds; the rest is for cleanup.
TimeoutStopSec=60
# The server ends its child processes; systemd kills those that are left after the timeout.
KillMode=mixed
Restart=on-failure
RestartSec=2
# Invalid configuration: a restart would fail again.
RestartPreventExitStatus=78
# Each client that follows output and each running command needs file descriptors.
LimitNOFILE=65536
# A fork bomb or a leak of an action must not take the machine. 80 % of its memory; see also: systemctl edit svc
TasksMax=8192
MemoryMax=80%
# Actions have a higher oom_score_adj: the kernel takes them first, and the server goes on.
OOMPolicy=continue

# These restrictions also apply to commands of actions. docs/install.md describes drop-ins for actions that
# need sudo, files of users, or containers.
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
# No MemoryDenyWriteExecute: the JavaScript engine compiles code at run time.

[Install]
WantedBy=multi-user.target
`

/** @param program path of the executable @param origin a sentence: who writes the file */
export function makeUnit(program: string, origin: string): string {
  return `# ${origin} To change it: systemctl edit svc\n${unit.replace('@program@', program)}`
}

export const unitText = makeUnit(paths.program, 'Written by "svc service install", which overwrites it.')
