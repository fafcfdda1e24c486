# shellcheck shell=bash
# Database servers and clients that the host's own Debian does not have, taken from the packages of another suite with
# all that they link to, and made to run where they lie: nothing is installed, no root is needed.

# The suite that has it, and its packages; of one with a + only what is in it, without what it needs.
database_packages() { # name
  case $1 in
    mysql) echo sid mysql-server-core mysql-client-core ;;
    mariadb-11) echo trixie mariadb-server-core mariadb-client +mariadb-server ;;
    *) die "no such database: $1; one of mysql mariadb-11" ;;
  esac
}

# Other packages are another directory.
database_dir() { # name
  echo "$CACHE/databases/$1-$(uname -m)-$(database_packages "$1" | sha256sum | cut -c1-8)"
}

# find_database NAME: makes it once.
find_database() {
  local packages
  read -ra packages < <(database_packages "${1:-}")
  [ ${#packages[@]} -gt 0 ] || exit 1
  cached "$(database_dir "$1")" take_packages "${packages[@]}"
}

take_packages() { # suite package... directory
  local suite=$1 directory=${*: -1} apt mirror file log=$CACHE/apt.log package packages=() alone=()
  for package in "${@:2:$#-2}"; do
    case $package in +*) alone+=("${package#+}") ;; *) packages+=("$package") ;; esac
  done
  need_packages dpkg-deb:dpkg patchelf:patchelf /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
  command -v apt-get >/dev/null || die "missing, and there is no apt-get to take it: ${packages[*]}"
  say "taking ${packages[*]} from Debian $suite (once; kept in $CACHE/databases)"
  apt=$directory.apt
  rm -rf "$apt"
  mkdir -p "$directory" "$apt"/{lists/partial,archives/partial,preferences.d}
  : >"$apt/status"
  mirror=$(debian_mirror) || return
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$mirror" "$suite" >"$apt/sources.list"
  {
    suite_apt "$apt" update -qq &&
      suite_apt "$apt" install -qq -y --download-only --no-install-recommends "${packages[@]}" &&
      { [ ${#alone[@]} -eq 0 ] || (cd "$apt/archives" && suite_apt "$apt" download -qq "${alone[@]}"); }
  } >"$log" 2>&1 </dev/null || {
    tail -n 20 "$log" >&2
    die "could not download ${packages[*]}; all of it: $log"
  }
  for file in "$apt"/archives/*.deb; do
    dpkg-deb -x "$file" "$directory" || die "could not unpack $file"
  done
  rm -rf "$apt" "${directory:?}"/{etc,var,usr/share/{doc,man,locale}}
  run_here "$directory" "${directory%.partial.*}"
}

# Programs look for their loader at an absolute path, and for libraries where the host has them: both are rewritten.
run_here() { # directory where-it-will-be
  local libraries loader program
  libraries=$(cd "$1" && echo usr/lib/*-linux-gnu)
  loader=$(cd "$1" && find usr/lib* lib* -name 'ld-linux-*.so.*' -print -quit)
  for program in "$1"/usr/{sbin,bin}/{mysql*,maria*,my_print_defaults}; do
    if [ ! -L "$program" ] && head -c 4 "$program" 2>/dev/null | grep -qF ELF; then
      patchelf --set-interpreter "$2/$loader" --force-rpath --set-rpath "$2/$libraries" "$program" || die "could not patch $program"
    fi
  done
}

# The mirror that the host itself uses.
debian_mirror() {
  local mirror
  # shellcheck disable=SC2016 # apt's own variables
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' | sed -n '/-security/!{s/ .*//p;q}')
  [ -n "$mirror" ] || die "apt knows no Debian mirror: run apt-get update, or add one to /etc/apt"
  echo "$mirror"
}

# A mirror may be a snapshot, so the date of its signature is not checked.
suite_apt() { # directory argument...
  local apt=$1
  shift
  apt-get -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Parts=/dev/null \
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts="$apt/preferences.d" -o Dir::State::Lists="$apt/lists" \
    -o Dir::State::Status="$apt/status" -o Dir::Cache::Archives="$apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
    -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}
