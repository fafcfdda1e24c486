// Reads objects as those do who wait for them: kstatus, Flux by its expressions, Argo CD by health.lua.
//
//	kubectl kustomize deploy/argocd | gitops VECTORS CUSTOMIZATIONS FLUX_KUSTOMIZATION
//
// VECTORS says what kstatus and Flux are to say of each object in CUSTOMIZATIONS/GROUP/KIND/testdata, health_test.yaml
// beside it what Argo CD is. Prints what is read otherwise, and exits with 1 then.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	fluxstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// vector is how one object is to be read.
type vector struct {
	Kstatus string `json:"kstatus"`
	Flux    string `json:"flux"`
	Why     string `json:"why"`
}

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// healthTest is Argo CD's form of a test.
type healthTest struct {
	Tests []struct {
		InputPath    string `json:"inputPath"`
		HealthStatus health `json:"healthStatus"`
	} `json:"tests"`
}

var readings, failures int

func check(what, got, want string) {
	readings++
	if got != want {
		failures++
		fmt.Printf("%s: %s, not %s\n", what, got, want)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return value
}

func decode(text []byte, into any, what string) {
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		must(0, fmt.Errorf("%s: %w", what, err))
	}
}

func main() {
	if len(os.Args) != 4 {
		must(0, fmt.Errorf("usage: gitops VECTORS CUSTOMIZATIONS FLUX_KUSTOMIZATION <CONFIGMAP"))
	}
	vectors := map[string]map[string]vector{}
	decode(must(os.ReadFile(os.Args[1])), &vectors, os.Args[1])
	evaluators := expressions(os.Args[3])
	scripts := configured(os.Args[2])

	var places []string
	for _, path := range must(filepath.Glob(filepath.Join(os.Args[2], "*", "*"))) {
		places = append(places, must(filepath.Rel(os.Args[2], path)))
	}
	check("kinds of the vectors", fmt.Sprint(slices.Sorted(maps.Keys(vectors))), fmt.Sprint(places))
	for _, place := range places {
		directory := filepath.Join(os.Args[2], place)
		tests := healthTest{}
		decode(must(os.ReadFile(filepath.Join(directory, "health_test.yaml"))), &tests, place)
		wanted := map[string]health{}
		for _, test := range tests.Tests {
			wanted[test.InputPath] = test.HealthStatus
		}
		var cases []string
		for _, path := range must(filepath.Glob(filepath.Join(directory, "testdata", "*.yaml"))) {
			name := strings.TrimSuffix(filepath.Base(path), ".yaml")
			cases = append(cases, name)
			object := read(path)
			what := place + " " + name
			check(what+": group and kind", object.GroupVersionKind().Group+"/"+object.GetKind(), place)
			kstatus(what, object, vectors[place][name], evaluators[place])
			input := "testdata/" + name + ".yaml"
			// Argo CD asks no script about an object that is being deleted.
			if object.GetDeletionTimestamp() != nil {
				continue
			}
			check(what+": Argo CD", fmt.Sprint(run(scripts[place], object)), fmt.Sprint(wanted[input]))
			delete(wanted, input)
		}
		check(place+": objects of the vectors", fmt.Sprint(slices.Sorted(maps.Keys(vectors[place]))), fmt.Sprint(cases))
		check(place+": tests without an object", fmt.Sprint(slices.Sorted(maps.Keys(wanted))), "[]")
	}
	fmt.Printf("gitops: %d readings, %d failures\n", readings, failures)
	if failures > 0 || readings < 100 {
		os.Exit(1)
	}
}

func read(path string) *unstructured.Unstructured {
	text := must(yaml.YAMLToJSON(must(os.ReadFile(path))))
	object := &unstructured.Unstructured{}
	must(0, object.UnmarshalJSON(text))
	return object
}

// kstatus compares what it says, in both its forms, and what Flux makes of the object by expressions, if it has some.
func kstatus(what string, object *unstructured.Unstructured, want vector, evaluator *cel.StatusEvaluator) {
	check(what+": kstatus", must(status.Compute(object)).Status.String(), want.Kstatus)
	check(what+": Flux's kstatus", must(fluxstatus.Compute(object)).Status.String(), want.Kstatus)
	if evaluator == nil {
		check(what+": Flux", want.Kstatus, want.Flux)
		return
	}
	// Flux goes on waiting for what an expression can't be made out of.
	got := fluxstatus.UnknownStatus
	if result, err := evaluator.Evaluate(context.Background(), object); err == nil {
		got = result.Status
	}
	check(what+": Flux", got.String(), want.Flux)
	if want.Kstatus != want.Flux && want.Why == "" {
		check(what+": why kstatus and Flux differ", "nothing", "a sentence")
	}
}

// expressions gives the evaluators of a Flux Kustomization by group and kind.
func expressions(path string) map[string]*cel.StatusEvaluator {
	kustomization := struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(must(os.ReadFile(path)), &kustomization); err != nil {
		must(0, fmt.Errorf("%s: %w", path, err))
	}
	all := map[string]*cel.StatusEvaluator{}
	for _, check := range kustomization.Spec.HealthCheckExprs {
		group, _, _ := strings.Cut(check.APIVersion, "/")
		all[group+"/"+check.Kind] = must(cel.NewStatusEvaluator(&check.HealthCheckExpressions))
	}
	return all
}

// configured gives the scripts by group and kind as argocd-cm has them, which have to be the files.
func configured(directory string) map[string]string {
	config := unstructured.Unstructured{}
	must(0, config.UnmarshalJSON(must(yaml.YAMLToJSON(must(io.ReadAll(os.Stdin))))))
	check("ConfigMap", config.GetNamespace()+"/"+config.GetName(), "argocd/argocd-cm")
	// Argo CD looks at no ConfigMap without it.
	check("its label", config.GetLabels()["app.kubernetes.io/part-of"], "argocd")
	data, _, err := unstructured.NestedStringMap(config.Object, "data")
	must(0, err)
	scripts := map[string]string{}
	for _, path := range must(filepath.Glob(filepath.Join(directory, "*", "*", "health.lua"))) {
		place := must(filepath.Rel(directory, filepath.Dir(path)))
		key := "resource.customizations.health." + strings.ReplaceAll(place, "/", "_")
		scripts[place] = data[key]
		check(key, data[key], string(must(os.ReadFile(path))))
		delete(data, key)
	}
	check("other keys", fmt.Sprint(slices.Sorted(maps.Keys(data))), "[]")
	return scripts
}

// run gives a script what Argo CD gives it unless useOpenLibs is set: the base and table libraries, and a second.
func run(script string, object *unstructured.Unstructured) health {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		function := lua.P{Fn: state.NewFunction(open), Protect: true}
		must(0, state.CallByParam(function, lua.LString(name)))
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(limit)
	state.SetGlobal("obj", value(state, object.Object))
	if err := state.DoString(script); err != nil {
		return health{"error", err.Error()}
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return health{"error", "no table is returned"}
	}
	said := health{lua.LVAsString(table.RawGetString("status")), lua.LVAsString(table.RawGetString("message"))}
	// Argo CD takes no others.
	if !slices.Contains([]string{"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"}, said.Status) {
		said.Status += " (which Argo CD does not know)"
	}
	return said
}

func value(state *lua.LState, of any) lua.LValue {
	switch of := of.(type) {
	case bool:
		return lua.LBool(of)
	case int64:
		return lua.LNumber(of)
	case float64:
		return lua.LNumber(of)
	case string:
		return lua.LString(of)
	case []any:
		table := state.CreateTable(len(of), 0)
		for _, one := range of {
			table.Append(value(state, one))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(of))
		for key, one := range of {
			table.RawSetString(key, value(state, one))
		}
		return table
	}
	return lua.LNil
}
