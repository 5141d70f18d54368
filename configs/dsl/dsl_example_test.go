package dsl_test

import (
	"fmt"

	"sluice/configs/dsl"
)

// words are a small language: the one of Sluice's files is in package configs.
var words = &dsl.Vocabulary{
	Sections: []string{"SERVER"},
	Named:    []string{"POOL"},
	Clauses:  []string{"PRIORITY", "POOL"},
}

func ExampleParse() {
	file, errs := dsl.Parse("rules.sluice", []byte(`ROUTE cheap { PRIORITY 100 WHEN model("small") AND NOT stream(true) }`), words)
	if len(errs) > 0 {
		fmt.Println(errs[0])
		return
	}
	for _, s := range file.Statements {
		fmt.Println(s.Word, s.Args[0].Text)
		for _, c := range s.Clauses {
			fmt.Println(" ", c.Word, "on line", c.Pos.Line, "column", c.Pos.Column)
		}
	}
	// Output:
	// ROUTE cheap
	//   PRIORITY on line 1 column 15
	//   WHEN on line 1 column 28
}

func ExampleError() {
	_, errs := dsl.Parse("rules.sluice", []byte("SERVER { drain: 30s\nPOOL a { url: \"x }\n"), words)
	for _, err := range errs {
		fmt.Println(err)
	}
	// Output:
	// rules.sluice:1:8: the "{" is never closed
	//     SERVER { drain: 30s
	//            ^
	// rules.sluice:2:15: the string is not closed on its line; a line break is written \n
	//     POOL a { url: "x }
	//                   ^
}

func ExamplePrint() {
	file, _ := dsl.Parse("rules.sluice", []byte("# spare\nPOOL a {workers:2,weight : 1} # not yet\nSERVER { drain: 30s }"), words)
	fmt.Print(string(dsl.Print(file)))
	// Output:
	// # spare
	// POOL a { workers: 2, weight: 1 } # not yet
	//
	// SERVER { drain: 30s }
}

func ExampleSnippet() {
	fmt.Println(dsl.Snippet([]byte("one\ntwo three\n"), dsl.Pos{Line: 2, Column: 5}))
	// Output:
	//     two three
	//         ^
}
