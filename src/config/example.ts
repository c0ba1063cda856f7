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
    'Configuration of svc. Every option is here with its default; remove the # in front of an option to change it. None is needed to start.',
  ),
  '#',
  prose(
    'The file is looked for as --config-file FILE (may be repeated, later files override), $SVC_CONFIG_FILE, ./svc.conf and /etc/svc/svc.conf. Changes take effect at the next start.',
  ),
  '#',
  prose(
    'Every option can also be given in the environment as SVC_<SECTION>__<OPTION> (SVC_API__PORT=8101), which overrides the file, and as a flag --<section>-<option> (svc serve --api-port 8101), which overrides both.',
  ),
  '#',
  prose(
    'Comments stand on lines of their own and begin with # or ;. A value is taken literally, without quotes. An indented line continues the value above it.',
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
