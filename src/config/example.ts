/** Writes `svc.conf.example` from the table of options. */
import { describeValues, optionEntries, sectionAbout } from './options.ts'

const width = 100

function prose(text: string): string {
  const lines: string[] = []
  let line = '#'
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > width && line !== '#') {
      lines.push(line)
      line = '#'
    }
    line += ` ${word}`
  }
  return [...lines, line].join('\n')
}

const introduction = [
  prose(
    'Configuration of svc. This file lists every option with its default. To change an option, remove the # in front of it. All options are optional.',
  ),
  '#',
  prose(
    'The server reads the first of: --config-file FILE (repeatable, later files override), $SVC_CONFIG_FILE, ./svc.conf, /etc/svc/svc.conf. Changes take effect at the next start.',
  ),
  '#',
  prose(
    'Every option is also an environment variable SVC_<SECTION>__<OPTION> (SVC_API__PORT=8101), which overrides the file, and a flag --<section>-<option> (svc serve --api-port 8101), which overrides both.',
  ),
  '#',
  prose(
    'Comments are separate lines that start with # or ;. Values are literal, without quotes. An indented line continues the value above it.',
  ),
].join('\n')

/** The complete text of the example file. */
export function renderExample(): string {
  const parts = [introduction]
  for (const [section, about] of Object.entries(sectionAbout)) {
    parts.push(`${prose(about)}\n[${section}]`)
    for (const { section: of, name, option } of optionEntries) {
      if (of !== section) continue
      const value = option.defaultText === '' ? '' : ` ${option.defaultText}`
      parts.push(`${prose(`${option.about} (${describeValues(option)})`)}\n#${name} =${value}`)
    }
  }
  return `${parts.join('\n\n')}\n`
}
