/** Lua files are imported as text, by the Text rule of wrangler.toml. */
declare module '*.lua' {
  const text: string
  export default text
}
