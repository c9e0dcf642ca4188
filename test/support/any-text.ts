import fc from 'fast-check'

/**
 * Text of any code points, with many that have a meaning in HTML, JSON, URLs or header fields. The unit `binary` of fast-check takes two
 * seconds to create.
 */
export const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'<>&"\'{}[]%+=?#;,:\\\r\n\0 a'),
    fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code)),
  ),
})
