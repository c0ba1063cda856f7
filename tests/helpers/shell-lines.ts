/**
 * The commands of a line as a shell would start them, each as its words; those in `$(…)` too. Redirections, variables
 * before a command and `export` are left out. @throws Error when a quote is not closed
 */
export function splitCommands(line: string): string[][] {
  const commands: string[][] = []
  let words: string[] = []
  let word: string | undefined
  let isTarget = false
  const endWord = (): void => {
    if (word !== undefined && !isTarget) words.push(word)
    if (word !== undefined) isTarget = false
    word = undefined
  }
  const endCommand = (): void => {
    endWord()
    while (/^(?:export|\w+=.*)$/s.test(words[0] ?? '')) words.shift()
    if (words.length > 0) commands.push(words)
    words = []
  }
  for (let index = 0; index < line.length; index += 1) {
    const character = line.charAt(index)
    if (character === "'" || character === '"') {
      const end = line.indexOf(character, index + 1)
      if (end === -1) throw new Error(`a quote is not closed: ${line}`)
      word = (word ?? '') + line.slice(index + 1, end)
      index = end
    } else if (line.startsWith('$(', index)) {
      const end = line.indexOf(')', index)
      if (end === -1) throw new Error(`a parenthesis is not closed: ${line}`)
      commands.push(...splitCommands(line.slice(index + 2, end)))
      word = `${word ?? ''}value`
      index = end
    } else if (/\s/.test(character)) endWord()
    else if (character === '#' && word === undefined) break
    else if (/[|;&]/.test(character)) endCommand()
    else if (/[<>]/.test(character)) {
      endWord()
      isTarget = true
    } else word = (word ?? '') + character
  }
  endCommand()
  return commands
}
