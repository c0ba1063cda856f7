/** What `svc service install` writes: the unit of systemd, and the configuration that fits it (docs/install.md). */

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
 * know. `Type=notify-reload` would need 253.
 */
export const unitText = `# Made by "svc service install", which replaces it. For changes: systemctl edit svc
[Unit]
Description=svc, event-driven automation server
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=${paths.program} serve --config-file ${paths.configuration}
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
# Programs that actions run take and write text as UTF-8.
Environment=LANG=C.UTF-8

# A large database may have to be migrated first.
TimeoutStartSec=15min
# Running actions get actionrunner.shutdown_grace_seconds (10), then 5 seconds; the rest is for what clears up after them.
TimeoutStopSec=60
# The server ends what it has started; what is left when the time is up is killed.
KillMode=mixed
Restart=on-failure
RestartSec=2
# The configuration cannot be used: starting again would not help.
RestartPreventExitStatus=78
# Every client that follows output, and every running command, takes some.
LimitNOFILE=65536
TasksMax=infinity

# Commands of actions are subject to all of this, too. docs/install.md tells what to put into a drop-in for those that
# need sudo, the files of users, or containers.
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
# No MemoryDenyWriteExecute: the engine compiles JavaScript to machine code while it runs.

[Install]
WantedBy=multi-user.target
`
