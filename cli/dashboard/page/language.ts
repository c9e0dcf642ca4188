/** Runs before uPlot, which formats numbers in the language of the browser. A locale such as `en-US@posix` is none that Intl accepts. */
try {
  Intl.getCanonicalLocales(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en' })
}
