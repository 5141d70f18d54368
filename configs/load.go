package configs

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"
)

// delim separates the levels of koanf's flat keys. It must not occur in a key:
// aliases are model names, which hold dots, slashes and colons. keyFault keeps
// control characters out.
const delim = "\x1f"

// Options are the sources of a configuration, in the order in which they
// override each other.
type Options struct {
	// Files are merged in order: mappings key by key, anything else (a list of
	// pools, too) is replaced. The format goes by the extension: .yaml, .yml,
	// .json, .toml, .sluice (see GRAMMAR.md); each holds at most 1 MiB. A name
	// such as etcd://host:2379/key, or etcds:// for TLS, is a key in etcd, of
	// which several servers may be named, with commas between; without an
	// extension it is YAML.
	Files []string
	// Etcd says how keys in etcd are read.
	Etcd Etcd
	// Sources, unless it is nil, is told what is read.
	Sources *Sources
	// Env is the environment, as os.Environ returns it. SLUICE_A__B=v sets the
	// key a.b and SLUICE_POOLS__NAME__KEY=v a key of the pool with that name,
	// in upper case with one _ for each run of other characters than letters
	// and digits. A value is written as in Override. An unknown name with this
	// prefix is a fault, but for the variables of Kubernetes' service links.
	// Secrets that name a variable are taken from here, too.
	Env []string
	// Flags are set last, in order.
	Flags []Override
}

// Load reads, merges and validates a configuration. The error is a Faults with
// everything that is wrong. Load keeps no state: it may be called again, also
// at the same time, and reads everything anew.
func Load(o Options) (*Config, error) {
	o.Sources.begin()
	l := loader{k: koanf.New(delim), origins: origins{}, env: o.Env, etcd: &o.Etcd, sources: o.Sources}
	for i, name := range o.Files {
		l.file(Origin{Name: name, rank: i})
	}
	l.settings(envSettings(o.Env, len(o.Files)), true)
	l.settings(flagSettings(o.Flags, len(o.Files)+1), false)
	c, err := l.config()
	if err != nil {
		return nil, err
	}
	o.Sources.noteFiles(c)
	if !l.partial {
		l.faults = append(l.faults, c.faults().without(l.faults)...)
	}
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// loader is the state of one Load.
type loader struct {
	k       *koanf.Koanf
	origins origins
	faults  Faults
	env     []string
	etcd    *Etcd
	sources *Sources
	copies  []etcdCopy
	stale   []error
	// partial is true when a file could not be read at all. What is missing
	// then, or unknown, may well stand in that file and is not a fault.
	partial bool
}

func (l *loader) file(origin Origin) {
	p := &parser{format: formatOf(origin.Name), origin: origin, origins: l.origins, faults: &l.faults, env: l.env, sources: l.sources}
	var from koanf.Provider = fileProvider(origin.Name)
	if isEtcd(origin.Name) {
		from = &etcdProvider{l: l, name: origin.Name}
		if p.format == formatNone && filepath.Ext(origin.Name) == "" {
			p.format = formatYAML
		}
	}
	if err := l.k.Load(noted{from, origin.Name, l.sources}, p); err != nil {
		l.faults.add(origin, "", err.Error())
	}
	l.partial = l.partial || !p.read
}

// settings applies variables or flags, one by one: a later one may address
// what an earlier one has set.
func (l *loader) settings(settings []setting, env bool) {
	setBy := make(map[string]string, len(settings))
	for _, s := range settings {
		values := l.k.Raw()
		t, err := locate(s.levels, values)
		if err != nil && !l.partial {
			l.faults.add(s.origin, "", unknownSetting(err, &s, env, values))
		}
		if err != nil {
			continue
		}
		if other := setBy[t.path]; env && other != "" {
			l.faults.add(s.origin, t.path, "is set by "+other+", too")
			continue
		}
		setBy[t.path] = s.origin.Name
		r := reader{origins: l.origins, faults: &l.faults, env: l.env, sources: l.sources}
		n := s.node(t.typ, t.path, &l.faults)
		if n == nil {
			continue
		}
		l.origins.forget(t.path)
		v, ok := r.value(n, t.typ, t.path)
		if !ok {
			continue
		}
		if err := l.k.Load(patch{v}, nil, koanf.WithMergeFunc(t.assign)); err != nil {
			l.faults.add(s.origin, t.path, err.Error())
		}
	}
}

func unknownSetting(err error, s *setting, env bool, values map[string]any) string {
	if !env {
		return "sets an unknown key: " + err.Error()
	}
	name := strings.TrimPrefix(s.origin.Name, envPrefix)
	if near := nearest(name, variables("", configType, values)); near != "" && near != name {
		return "unknown variable: " + err.Error() + "; did you mean " + envPrefix + near + "?"
	}
	return "unknown variable: " + err.Error()
}

// patch is the koanf.Provider of one value.
type patch struct{ value any }

const patchKey = "value"

// Read returns the value, which target.assign puts in its place.
func (p patch) Read() (map[string]any, error) { return map[string]any{patchKey: p.value}, nil }

// ReadBytes returns an error: a patch has no text.
func (p patch) ReadBytes() ([]byte, error) { return nil, errNoParser }

// assign is the merge function of a patch. Unlike koanf's own it replaces a
// mapping as a whole and reaches into lists. The place exists but for mappings
// on the way to it. The error is always nil.
func (t *target) assign(src, dest map[string]any) error {
	var at any = dest
	last := len(t.steps) - 1
	for _, step := range t.steps[:last] {
		next := inside(at, step)
		switch next.(type) {
		case map[string]any, []any:
		default:
			next = map[string]any{}
			put(at, step, next)
		}
		at = next
	}
	put(at, t.steps[last], src[patchKey])
	return nil
}

// put sets the value at one step below at. That it is there, and of the kind
// of the step, is what locate has found.
func put(at, step, value any) {
	switch at := at.(type) {
	case map[string]any:
		at[step.(string)] = value
	case []any:
		at[step.(int)] = value
	}
}

// config returns the merged values over the defaults.
func (l *loader) config() (*Config, error) {
	c := Default()
	if pools, ok := l.k.Get("pools").([]any); ok {
		// mapstructure decodes into the items that are there, so each pool
		// begins with the defaults of a pool.
		c.Pools = make([]Pool, len(pools))
		for i := range c.Pools {
			c.Pools[i] = DefaultPool()
		}
	}
	err := l.k.UnmarshalWithConf("", c, koanf.UnmarshalConf{
		DecoderConfig: &mapstructure.DecoderConfig{ErrorUnused: true},
	})
	if err != nil {
		return nil, fmt.Errorf("BUG: values that were checked do not fit: %w", err)
	}
	if c.Contract != nil && c.Contract.OnConflict == "" {
		c.Contract.OnConflict = defaultOnConflict
	}
	c.origins, c.copies, c.stale = l.origins, l.copies, l.stale
	return c, nil
}
