import { expect, test } from 'vitest'
import { changedLines } from '../../tools/package/changed-lines.ts'

test('Equal texts have no changed line.', () => {
  expect(changedLines('one\ntwo', 'one\ntwo')).toEqual([])
})

test('Removed and added lines are listed in order, without the lines that both texts have.', () => {
  expect(changedLines('one\ntwo\nthree\nfour', 'one\n2\nthree\nfour\nfive')).toEqual([
    '- two',
    '+ 2',
    '+ five',
  ])
})
