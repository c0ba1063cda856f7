/** Whether programs of this environment take text as UTF-8 (locale(7)); without any of the variables they do not. */
export function isUtf8Locale(env: NodeJS.ProcessEnv): boolean {
  return /\.utf-?8\b/i.test(localeOf(env))
}

/** What the environment says; `C` when it says nothing. */
export function localeOf({ LC_ALL: all = '', LC_CTYPE: type = '', LANG: lang = '' }: NodeJS.ProcessEnv): string {
  return [all, type, lang].find((name) => name !== '') ?? 'C'
}
