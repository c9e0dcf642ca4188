import { expect, test } from 'vitest'
import { table } from '../../cli/dev/banner.ts'

test('A cell that is wider than allowed moves only its own row.', () => {
  const rows = [
    ['Worker', 'http://127.0.0.1:8787', 'send requests here'],
    ['Dashboard', 'http://127.0.0.1:8780/#a-long-token', 'shows live'],
  ]
  expect(table(rows, 30)).toBe(`  Worker      http://127.0.0.1:8787   send requests here
  Dashboard   http://127.0.0.1:8780/#a-long-token   shows live`)
  expect(table(rows)).toBe(`  Worker      http://127.0.0.1:8787                 send requests here
  Dashboard   http://127.0.0.1:8780/#a-long-token   shows live`)
})
