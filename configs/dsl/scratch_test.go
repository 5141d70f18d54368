package dsl
import ("testing";"os";"fmt")
func TestScratch(t *testing.T) {
	src, _ := os.ReadFile("/tmp/t/a.sluice")
	v := &Vocabulary{Sections: []string{"SERVER","POOLS","CONTRACT"}, Named: []string{"POOL"}, Clauses: []string{"PRIORITY","MODEL","POOL","STICKY","CONTRACT"}, Flags: []string{"STICKY"}}
	f, errs := Parse("a.sluice", src, v)
	for _, e := range errs { fmt.Println(e) }
	out := Print(f)
	fmt.Print(string(out))
	f2, errs := Parse("b", out, v)
	if len(errs)>0 {t.Error(errs)}
	if string(Print(f2)) != string(out) { t.Errorf("unstable\n%s", Print(f2)) }
}
