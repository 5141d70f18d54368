// Package bench is what is run on the whole product: the rules of the house as
// tests, and below it the suites that an operator runs before a release. It may
// import everything, nothing imports it.
package bench
