package configs

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// SignalHeader begins the names of the header fields that stand for what only
// semantic-router can tell of a request (see FromSemanticRouter).
const SignalHeader = "x-signal-"

// FromSemanticRouter converts a configuration of vllm-project/semantic-router (a
// YAML file; its canonical form v0.3, or the older one with decisions and
// vllm_endpoints at the top) to one of Formats. Taken over are the decisions with
// their rules, model and plugin request_params, the back ends of the models as
// pools, and the address of the first listener.
//
// Sluice does not read prompts: of their signals it knows the length of the
// context alone. A condition on another one becomes a test of the header field
// x-signal-TYPE for its name, which whatever classifies requests must set; so a
// decision never takes more than it did. left lists this and everything else that
// is not the same, with its place. The error is a Faults when the file cannot be
// read.
func FromSemanticRouter(name, to string) (out []byte, left Faults, err error) {
	format := formatOf("." + to)
	if format == formatNone {
		return nil, nil, fmt.Errorf("unknown format %s; expected one of %s", quote(to), strings.Join(Formats, ", "))
	}
	if formatOf(name) != formatYAML {
		return nil, nil, Faults{{Origin: Origin{Name: name}, Msg: "must be a .yaml file"}}
	}
	source, err := readNode(Origin{Name: name})
	if err != nil {
		return nil, nil, err
	}
	s := &semantic{source: source, root: newMap()}
	s.convert()
	out, err = writeNode(s.root, format)
	left = append(s.left, s.wrong()...)
	slices.SortStableFunc(left, compareFaults)
	return out, left, err
}

// semantic is one conversion.
type semantic struct {
	source, root *node
	left         Faults
	// pools and decisions are the names of those that there are.
	pools, decisions []string
}

func (s *semantic) leave(n *node, path, format string, args ...any) {
	s.left.add(n.origin, path, fmt.Sprintf(format, args...))
}

// at returns what is below n at keys, or nil.
func (n *node) at(keys ...string) *node {
	for _, key := range keys {
		m := n.find(key)
		if m == nil {
			return nil
		}
		n = m.value
	}
	return n
}

// textAt returns the scalar at key, or "".
func (n *node) textAt(key string) string {
	if v := n.at(key); v != nil {
		return v.text
	}
	return ""
}

// itemsAt returns the items at keys that are mappings.
func (n *node) itemsAt(keys ...string) []*node {
	list := n.at(keys...)
	if list == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list.items), func(n *node) bool { return n.kind != kindMap })
}

// rest leaves the members of n but those with known keys.
func (s *semantic) rest(n *node, path string, known ...string) {
	for _, m := range n.members {
		if !slices.Contains(known, m.key) {
			s.left.add(m.origin, childPath(path, m.key), "is not taken over")
		}
	}
}

func (s *semantic) convert() {
	routing, path := s.source.at("routing"), "routing"
	if routing == nil {
		routing, path = s.source, ""
		s.rest(s.source, "", "version", "listeners", "providers", "decisions", "strategy", "vllm_endpoints", "model_config", "default_model")
	} else {
		s.rest(s.source, "", "version", "listeners", "providers", "routing")
		s.rest(routing, path, "decisions", "strategy", "signals")
	}
	if strategy := routing.at("strategy"); strategy != nil && strategy.text != "priority" {
		s.leave(strategy, joinPath(path, "strategy"), "decisions go by priority here, not by %s", quote(strategy.text))
	}
	s.listener()
	s.providers()
	s.endpoints()
	list := newList()
	for i, d := range routing.itemsAt("decisions") {
		list.items = append(list.items, s.decision(routing, d, itemPath(joinPath(path, "decisions"), i)))
	}
	if len(list.items) > 0 {
		s.root.put("routing", newMap().put("decisions", list))
	}
}

func (s *semantic) listener() {
	for i, l := range s.source.itemsAt("listeners") {
		path := itemPath("listeners", i)
		if i > 0 {
			s.leave(l, path, "there is one data listener: this one is not taken over")
			continue
		}
		if l.textAt("port") != "" {
			s.root.put("server", newMap().put("listen", newText(net.JoinHostPort(l.textAt("address"), l.textAt("port")))))
		}
		s.rest(l, path, "name", "address", "port")
	}
}

// providers turns the models of providers into pools.
func (s *semantic) providers() {
	for i, m := range s.source.itemsAt("providers", "models") {
		path := itemPath("providers.models", i)
		s.rest(m, path, "name", "provider_model_id", "backend_refs", "pricing")
		workers, engine := newList(), ""
		for j, b := range m.itemsAt("backend_refs") {
			at := itemPath(path+".backend_refs", j)
			s.rest(b, at, "name", "endpoint", "base_url", "protocol", "weight", "provider")
			engine = b.textAt("provider")
			if w := s.worker(b, at, b.textAt("protocol"), b.textAt("endpoint")+strings.TrimSuffix(b.textAt("base_url"), "/")); w != nil {
				workers.items = append(workers.items, w)
			}
		}
		s.pool(m, path, m.textAt("name"), m.textAt("provider_model_id"), engine, workers)
	}
	if providers := s.source.at("providers"); providers != nil {
		s.rest(providers, "providers", "models")
	}
}

// endpoints turns the models and vllm_endpoints of the older form into pools.
func (s *semantic) endpoints() {
	models := s.source.at("model_config")
	if models == nil {
		return
	}
	for _, m := range models.members {
		path := childPath("model_config", m.key)
		s.rest(m.value, path, "preferred_endpoints")
		workers := newList()
		for i, e := range s.source.itemsAt("vllm_endpoints") {
			prefers := m.value.at("preferred_endpoints")
			if prefers != nil && !slices.ContainsFunc(prefers.items, func(n *node) bool { return n.text == e.textAt("name") }) {
				continue
			}
			host := net.JoinHostPort(e.textAt("address"), e.textAt("port"))
			if w := s.worker(e, itemPath("vllm_endpoints", i), "http", host); w != nil {
				workers.items = append(workers.items, w)
			}
		}
		s.pool(m.value, path, m.key, "", "vllm", workers)
	}
}

// worker returns the worker at address, or nil where that is no plain one.
func (s *semantic) worker(n *node, path, scheme, address string) *node {
	if scheme != "" && !strings.Contains(address, "://") {
		address = scheme + "://" + address
	}
	if _, msg := workerHost(address); msg != "" {
		s.leave(n, path, "is no worker: the URL %s", msg)
		return nil
	}
	w := newMap().put("url", newText(address))
	if weight := n.at("weight"); weight != nil && weight.kind == kindInt {
		w.put("weight", weight)
	}
	return w
}

// pool adds the pool of one model.
func (s *semantic) pool(n *node, path, model, served, engine string, workers *node) {
	if len(workers.items) == 0 {
		s.leave(n, path, "has no back end that is a worker: there is no pool for it")
		return
	}
	p := newMap().put("name", newText(s.name(n, path, model, &s.pools)))
	if served == "" {
		served = model
	}
	p.put("models", newList(newText(served)))
	if served != model {
		p.put("aliases", newMap().put(model, newText(served)))
	}
	if engine == "vllm" || engine == "sglang" {
		p.put("engine", newText(engine))
	}
	p.put("workers", workers)
	all := s.root.at("pools")
	if all == nil {
		all = newList()
		s.root.put("pools", all)
	}
	all.items = append(all.items, p)
}

// name returns a name in our form that is not taken, and adds it to taken.
func (s *semantic) name(n *node, path, name string, taken *[]string) string {
	clean := []byte(name)
	for i, c := range clean {
		if !isAlphanumeric(c) && strings.IndexByte("._-", c) < 0 {
			clean[i] = '-'
		}
	}
	out := strings.TrimLeft(string(clean[:min(len(clean), 60)]), "._-")
	for i := 2; out == "" || slices.Contains(*taken, out); i++ {
		out = strings.TrimLeft(string(clean[:min(len(clean), 56)]), "._-") + strconv.Itoa(i)
	}
	if out != name {
		s.leave(n, path, "is named %s here", out)
	}
	*taken = append(*taken, out)
	return out
}

func (s *semantic) decision(routing, d *node, path string) *node {
	s.rest(d, path, "name", "description", "priority", "rules", "modelRefs", "plugins")
	out := newMap().put("name", newText(s.name(d, path+".name", d.textAt("name"), &s.decisions)))
	if text := strings.Join(strings.Fields(d.textAt("description")), " "); text != "" {
		out.put("description", newText(text))
	}
	if priority := d.at("priority"); priority != nil {
		out.put("priority", priority)
	}
	if rules := d.at("rules"); rules != nil && len(rules.members) > 0 && (rules.at("conditions") == nil || len(rules.at("conditions").items) > 0) {
		out.put("rules", s.rule(routing, rules, path+".rules"))
	}
	s.model(out, d, path+".modelRefs")
	plugins := newList()
	for i, p := range d.itemsAt("plugins") {
		at := itemPath(path+".plugins", i)
		if pluginType(p.textAt("type")) != RequestParams {
			s.leave(p, at, "the plugin %s is not taken over", quote(p.textAt("type")))
			continue
		}
		plugin := newMap().put("type", newText(RequestParams))
		if config := p.at("configuration"); config != nil && config.kind == kindMap {
			s.rest(config, at+".configuration", paramKeys...)
			kept := newMap()
			for _, m := range config.members {
				if slices.Contains(paramKeys, m.key) {
					kept.put(m.key, m.value)
				}
			}
			plugin.put("configuration", kept)
		}
		plugins.items = append(plugins.items, plugin)
	}
	if len(plugins.items) > 0 {
		out.put("plugins", plugins)
	}
	return out
}

// model takes the one model of a decision, or that with the largest weight.
func (s *semantic) model(out, d *node, path string) {
	var best *node
	most := -1.0
	refs := d.itemsAt("modelRefs")
	for i, ref := range refs {
		s.rest(ref, itemPath(path, i), "model", "weight")
		weight := 0.0
		if f, err := strconv.ParseFloat(ref.textAt("weight"), 64); err == nil {
			weight = f
		}
		if ref.textAt("model") != "" && weight > most {
			best, most = ref.at("model"), weight
		}
	}
	if best == nil {
		return
	}
	if len(refs) > 1 {
		s.leave(d.at("modelRefs"), path, "a decision has one model here: %s is taken", quote(best.text))
	}
	out.put("model", newText(best.text))
}

// rule returns a tree of rules; what conditions on signals become, the comment
// of FromSemanticRouter tells.
func (s *semantic) rule(routing, r *node, path string) *node {
	if op := r.at("operator"); op != nil {
		list := newList()
		for i, c := range r.itemsAt("conditions") {
			list.items = append(list.items, s.rule(routing, c, itemPath(path+".conditions", i)))
		}
		return newMap().put("operator", newText(strings.ToUpper(op.text))).put("conditions", list)
	}
	typ, name := r.textAt("type"), r.textAt("name")
	s.rest(r, path, "type", "name")
	for _, signal := range routing.itemsAt("signals", "context") {
		if typ != "context" || signal.textAt("name") != name {
			continue
		}
		out := newMap().put("type", newText("context"))
		for _, key := range []string{"min_tokens", "max_tokens"} {
			if bound := signal.at(key); bound != nil {
				out.put(key, bound)
			}
		}
		return out
	}
	field := SignalHeader + strings.ReplaceAll(typ, "_", "-")
	s.leave(r, path, "the signal %s is not known here: set the header field %s: %s in front of the router", typ, field, name)
	return newMap().put("type", newText("header")).put("name", newText(field)).put("exact", newText(name))
}

// wrong returns the faults of what was made.
func (s *semantic) wrong() Faults {
	c, faults := configOf(s.root)
	if c == nil {
		return faults
	}
	for _, f := range c.faults() {
		f.Msg = "the result is not valid yet: " + f.Msg
		faults = append(faults, f)
	}
	return faults
}
