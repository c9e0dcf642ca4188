/** Quotes a text unless it is plain. Text of a request may contain spaces or control characters. */
export const quote = (text: string): string =>
  /^[\w.:;/@*%~+=!$&'(),[\]-]+$/.test(text) ? text : JSON.stringify(text)

/** Escapes control characters, and characters that change the direction of text, so that a terminal shows them as text. */
export const harmless = (text: string): string =>
  text.replace(/(?!\n)[\p{C}\u2028\u2029]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
