package dsl

// Pos is a place in a file. Line and Column count from 1, the column in
// characters.
type Pos struct{ Line, Column int }

// Comment is one comment line.
type Comment struct {
	// Text begins with # and has no line end.
	Text string
	// Blank says that an empty line stands before it.
	Blank bool
}

// Notes are the comments around a statement, a field, an item or a condition.
type Notes struct {
	// Before are the lines before it, and those found inside it where the tree
	// has no place for them.
	Before []Comment
	// Blank says that an empty line stands between Before, or what comes
	// before that, and the thing itself.
	Blank bool
	// After is the comment behind it on its last line, or "".
	After string
}

func (n *Notes) commented() bool { return len(n.Before) > 0 || n.After != "" }

// File is one .sluice file.
type File struct {
	Statements []*Statement
	// End are the comments behind the last statement.
	End []Comment
}

// Statement is a word of the top level or a clause of a ROUTE with what follows
// it.
type Statement struct {
	Notes
	Pos  Pos
	Word string
	// Args are the names that follow the word: of PLUGIN its name and, at the
	// top level, its type; of ROUTE and the Named words the name.
	Args []*Value
	// Props are what a ROUTE has in parentheses.
	Props []*Field
	// When is the condition of a WHEN.
	When *Cond
	// Value is what any other word sets; of PLUGIN and Named words a map. Nil
	// for a flag and for a PLUGIN without one.
	Value *Value
	// Clauses are the body of a ROUTE, End the comments behind the last one.
	Clauses []*Statement
	End     []Comment
}

// Kind is the type of a value.
type Kind uint8

// The kinds of values. Int and Float are numbers as JSON writes them.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// Value is a value as it was written.
type Value struct {
	Pos  Pos
	Kind Kind
	// Text is a scalar without quotes and escapes.
	Text string
	// Quoted says that a String was, or must be, written in quotes.
	Quoted bool
	// Items are those of a List, Fields those of a Map.
	Items  []*Item
	Fields []*Field
	// End are the comments behind the last item or field.
	End []Comment
	// Break says that the items or fields are written on lines of their own.
	Break bool
}

// Item is an item of a list.
type Item struct {
	Notes
	Value *Value
}

// Field is a key with its value.
type Field struct {
	Notes
	Pos   Pos
	Key   string
	Value *Value
}

// Op is what a condition does.
type Op uint8

// The operators of conditions, in the order in which they bind: NOT most, OR
// least.
const (
	Test Op = iota // name(args)
	Not
	And
	Or
)

// Cond is a condition of a WHEN.
type Cond struct {
	Notes
	Pos Pos
	Op  Op
	// Conds are what an operator joins: one for Not, two or more for others.
	Conds []*Cond
	// Name and Args are those of a Test: header("x-tier" exact "gold").
	Name string
	Args []*Value
	// Paren says that And or Or stands in parentheses.
	Paren bool
}
