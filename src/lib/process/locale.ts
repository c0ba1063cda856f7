/** Whether programs in this environment use UTF-8 (locale(7)); without any of the variables they do not. */
export function isUtf8Locale(env: NodeJS.ProcessEnv): boolean {
  return /\.utf-?8\b/i.test(localeOf(env))
}

/** The locale of the environment; default `C`. */
export function localeOf({ LC_ALL: all = '', LC_CTYPE: type = '', LANG: lang = '' }: NodeJS.ProcessEnv): string {
  return [all, type, lang].find((name) => name !== '') ?? 'C'
}
