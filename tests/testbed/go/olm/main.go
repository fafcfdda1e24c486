// Validates an OLM bundle by the validators of operator-framework/api, which OperatorHub.io and operator-sdk have too.
//
//	olm DIRECTORY
//
// Prints errors and warnings, and exits with 1 if there are any.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

// excused says whether a warning is none of ours: the project has no logo, and a rule of RBAC names no version of an API, of
// which the validators take cronjobs and events for the versions that were removed.
func excused(warning string) bool {
	if strings.Contains(warning, "csv.Spec.Icon not specified") {
		return true
	}
	places := strings.Split(warning, `"`)
	for at := 1; at < len(places); at += 2 {
		if !strings.HasPrefix(places[at], "ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.ClusterPermissions") {
			return false
		}
	}
	return len(places) > 1 && strings.Contains(warning, "deprecated and removed")
}

func main() {
	if len(os.Args) != 2 {
		fmt.Println("usage: olm DIRECTORY")
		os.Exit(2)
	}
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil || bundle == nil {
		fmt.Println("no bundle:", err)
		os.Exit(1)
	}
	validators := interfaces.Validators{
		validation.ClusterServiceVersionValidator,
		validation.CustomResourceDefinitionValidator,
		validation.BundleValidator,
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
		validation.ObjectValidator,
		validation.AlphaDeprecatedAPIsValidator,
		validation.GoodPracticesValidator,
	}
	results, bad := validators.Validate(bundle.ObjectsToValidate()...), 0
	for _, result := range results {
		for _, found := range result.Errors {
			bad++
			fmt.Println(found.Error())
		}
		for _, found := range result.Warnings {
			if !excused(found.Error()) {
				bad++
				fmt.Println(found.Error())
			}
		}
	}
	fmt.Printf("olm: %d results, %d errors and warnings\n", len(results), bad)
	if bad > 0 || len(results) < len(validators) {
		os.Exit(1)
	}
}
