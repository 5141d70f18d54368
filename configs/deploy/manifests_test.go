package deploy

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice/configs"
)

// object is a manifest of Kubernetes, or a part of one.
type object struct {
	t    *testing.T
	path string
	v    any
}

// manifests returns the objects of the folder by kind.
func manifests(t *testing.T) map[string]object {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]object{}
	for _, file := range files {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(read(t, file)), &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kind, _ := v["kind"].(string)
		list[kind] = object{t, file, v}
	}
	for _, kind := range []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"} {
		if list[kind].v == nil {
			t.Fatalf("there is no %s in %q", kind, files)
		}
	}
	return list
}

// at returns what is at a path of keys and, as numbers, indexes, such as
// spec.ports.0; there must be something.
func (o object) at(path string) object {
	o.t.Helper()
	for key := range strings.SplitSeq(path, ".") {
		o.path += "." + key
		switch v := o.v.(type) {
		case map[string]any:
			o.v = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				o.t.Fatalf("%s is missing", o.path)
			}
			o.v = v[i]
		default:
			o.v = nil
		}
		if o.v == nil {
			o.t.Fatalf("%s is missing", o.path)
		}
	}
	return o
}

func (o object) text() string {
	o.t.Helper()
	s, ok := o.v.(string)
	if !ok {
		o.t.Fatalf("%s is no string: %v", o.path, o.v)
	}
	return s
}

func (o object) number() int {
	o.t.Helper()
	n, ok := o.v.(int)
	if !ok {
		o.t.Fatalf("%s is no number: %v", o.path, o.v)
	}
	return n
}

// find returns the item of the list at path that has the given name.
func (o object) find(path, name string) object {
	o.t.Helper()
	list := o.at(path)
	items, _ := list.v.([]any)
	for i := range items {
		if item := list.at(strconv.Itoa(i)); item.at("name").text() == name {
			return item
		}
	}
	o.t.Fatalf("%s has no item %s", list.path, name)
	return object{}
}

// want is what the objects must agree on.
func (o object) want(path string, want any) {
	o.t.Helper()
	if got := o.at(path); got.v != want {
		o.t.Errorf("unexpected %s; got %v; want %v", got.path, got.v, want)
	}
}

// port returns the port of an address.
func port(t *testing.T, address string) int {
	t.Helper()
	_, after, _ := strings.Cut(address, ":")
	n, err := strconv.Atoi(after)
	if err != nil {
		t.Fatalf("unexpected address %q", address)
	}
	return n
}

// configOf returns the configuration in the ConfigMap.
func configOf(t *testing.T, m map[string]object) *configs.Config {
	t.Helper()
	cfg, err := load(t, "yaml", withFiles(t, m["ConfigMap"].at("data").v.(map[string]any)["sluice.yaml"].(string)))
	if err != nil {
		t.Fatalf("the configuration of the ConfigMap does not load:\n%s", configs.Report(err))
	}
	return cfg
}

// TestKubernetes_Drain holds the time that Kubernetes gives a pod to what the
// router may need.
func TestKubernetes_Drain(t *testing.T) {
	m := manifests(t)
	cfg := configOf(t, m)
	pod := m["Deployment"].at("spec.template.spec")
	pre := time.Duration(pod.at("containers.0.lifecycle.preStop.sleep.seconds").number()) * time.Second
	grace := time.Duration(pod.at("terminationGracePeriodSeconds").number()) * time.Second
	if least := pre + cfg.Server.Drain + 10*time.Second; grace < least {
		t.Errorf("the grace period is %v; preStop, drain and an end need %v", grace, least)
	}
	if cfg.Server.DrainDelay >= cfg.Server.Drain {
		t.Errorf("drain_delay %v is the whole of drain %v", cfg.Server.DrainDelay, cfg.Server.Drain)
	}
	probe := pod.at("containers.0.readinessProbe")
	notices := time.Duration(probe.at("periodSeconds").number()*probe.at("failureThreshold").number()) * time.Second
	if cfg.Server.DrainDelay < notices {
		t.Errorf("drain_delay is %v; a readiness probe needs %v to see it", cfg.Server.DrainDelay, notices)
	}
}

// TestKubernetes_Ports holds the ports of all objects to those of the
// configuration, and the probes to the data listener.
func TestKubernetes_Ports(t *testing.T) {
	m := manifests(t)
	cfg := configOf(t, m)
	c := m["Deployment"].find("spec.template.spec.containers", "sluice")
	c.find("ports", "http").want("containerPort", port(t, cfg.Server.Listen))
	c.find("ports", "admin").want("containerPort", port(t, cfg.Server.AdminListen))
	if cfg.Server.Admin.Token == "" {
		t.Error("the admin listener has no token")
	}
	m["Service"].find("spec.ports", "http").want("targetPort", "http")
	for probe, path := range map[string]string{"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/ready"} {
		c.want(probe+".httpGet.path", path)
		c.want(probe+".httpGet.port", "http")
	}
}

// TestKubernetes_Names holds selectors to labels, and mounts to volumes.
func TestKubernetes_Names(t *testing.T) {
	m := manifests(t)
	d := m["Deployment"]
	const label = "app.kubernetes.io/name"
	for _, labels := range []object{
		d.at("spec.selector.matchLabels"), d.at("spec.template.metadata.labels"), m["Service"].at("spec.selector"),
		m["PodDisruptionBudget"].at("spec.selector.matchLabels"),
		d.at("spec.template.spec.topologySpreadConstraints.0.labelSelector.matchLabels"),
		d.at("spec.template.spec.topologySpreadConstraints.1.labelSelector.matchLabels"),
	} {
		if got := labels.v.(map[string]any)[label]; got != "sluice" {
			t.Errorf("unexpected label at %s: %v", labels.path, got)
		}
	}
	pod := d.at("spec.template.spec")
	pod.find("volumes", "config").want("configMap.name", m["ConfigMap"].at("metadata.name").text())
	c := pod.find("containers", "sluice")
	mount := c.find("volumeMounts", "config")
	if _, ok := mount.v.(map[string]any)["subPath"]; ok {
		t.Error("a file that is mounted by subPath never changes")
	}
	file := filepath.Join(mount.at("mountPath").text(), "sluice.yaml")
	if args := c.at("args"); args.at("2").text() != file || args.at("1").text() != "--config" {
		t.Errorf("the router is not told of %s: %v", file, args.v)
	}
	if n, away := d.at("spec.replicas").number(), m["PodDisruptionBudget"].at("spec.maxUnavailable").number(); away >= n {
		t.Errorf("the budget lets %d of %d replicas go", away, n)
	}
}

// TestKubernetes_Rights holds the pod to no rights, under the user of the image.
func TestKubernetes_Rights(t *testing.T) {
	pod := manifests(t)["Deployment"].at("spec.template.spec")
	user, _, _ := strings.Cut(instruction(t, "USER")[0], ":")
	for _, key := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
		if got := pod.at("securityContext." + key).number(); strconv.Itoa(got) != user {
			t.Errorf("unexpected %s %d; the image has %s", key, got, user)
		}
	}
	pod.want("securityContext.runAsNonRoot", true)
	pod.want("securityContext.seccompProfile.type", "RuntimeDefault")
	pod.want("automountServiceAccountToken", false)
	c := pod.find("containers", "sluice")
	c.want("securityContext.allowPrivilegeEscalation", false)
	c.want("securityContext.readOnlyRootFilesystem", true)
	c.want("securityContext.capabilities.drop.0", "ALL")
	c.find("volumeMounts", "state").want("mountPath", instruction(t, "WORKDIR")[1])
	c.at("resources.limits.memory")
}

// instruction returns the arguments of each instruction of that name in the
// Dockerfile.
func instruction(t *testing.T, name string) (list []string) {
	t.Helper()
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		if args, ok := strings.CutPrefix(line, name+" "); ok {
			list = append(list, strings.TrimSpace(args))
		}
	}
	if len(list) == 0 {
		t.Fatalf("the Dockerfile has no %s", name)
	}
	return list
}

// TestDockerfile holds the image to what it promises.
func TestDockerfile(t *testing.T) {
	if user := instruction(t, "USER"); len(user) != 1 || !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user[0]) {
		t.Errorf("the user must be a number that is not root's; got %q", user)
	}
	from := instruction(t, "FROM")
	if from[len(from)-1] != "scratch" {
		t.Errorf("the image is made from %q", from)
	}
	for _, name := range from {
		if strings.Contains(name, "/") {
			t.Errorf("an image is named with its registry: %q", name)
		}
	}
	build := read(t, "../../Makefile")
	for _, flag := range []string{"CGO_ENABLED=0", "GOEXPERIMENT", "-trimpath"} {
		if !strings.Contains(read(t, "Dockerfile"), flag) || !strings.Contains(build, flag) {
			t.Errorf("make and the Dockerfile do not both build with %s", flag)
		}
	}
	if goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../../go.mod")); !strings.HasPrefix(from[0], "golang:"+goVersion[1]+" ") {
		t.Errorf("the image is built with %q, the module needs Go %s", from[0], goVersion[1])
	}
	listen := configs.Default().Server.Listen
	if !slices.Contains(instruction(t, "EXPOSE"), strconv.Itoa(port(t, listen))) {
		t.Errorf("the port of %s is not exposed", listen)
	}
	if !slices.Contains(instruction(t, "ENV"), "SLUICE_SERVER__LISTEN=:"+strconv.Itoa(port(t, listen))) {
		t.Error("serve and health are not told the same address")
	}
	entry := instruction(t, "ENTRYPOINT")[0]
	if health := instruction(t, "HEALTHCHECK")[0]; entry != `["/sluice"]` || !strings.HasSuffix(health, `CMD ["/sluice", "health"]`) {
		t.Errorf("unexpected ENTRYPOINT %s, HEALTHCHECK %s", entry, health)
	}
}

// TestSystemd_Drain holds the time that systemd gives the router to its drain.
func TestSystemd_Drain(t *testing.T) {
	unit := read(t, "sluice.service")
	env := regexp.MustCompile(`(?m)^Environment=SLUICE_SERVER__DRAIN=(\S+)$`).FindStringSubmatch(unit)
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(unit)
	if env == nil || stop == nil {
		t.Fatal("the unit says neither how long to drain nor how long to wait")
	}
	cfg, err := configs.Load(configs.Options{Env: []string{"SLUICE_SERVER__DRAIN=" + env[1]}})
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.Atoi(stop[1])
	if err != nil {
		t.Fatal(err)
	}
	if wait := time.Duration(seconds) * time.Second; wait < cfg.Server.Drain+10*time.Second {
		t.Errorf("systemd waits %v; the drain is %v", wait, cfg.Server.Drain)
	}
}

// TestSystemd_Rights holds the unit to the limits that matter.
func TestSystemd_Rights(t *testing.T) {
	unit := read(t, "sluice.service")
	for _, line := range []string{
		"DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "Restart=always",
		"LimitNOFILE=1048576", "ExecReload=/bin/kill -HUP $MAINPID",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("the unit lacks %s", line)
		}
	}
}
