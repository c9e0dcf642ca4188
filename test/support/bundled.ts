/** Workers of the tests. */
export { bundled } from '../../tools/build.ts'
