//! Why a run ended as it did: every reason of the runner, with its meaning, remedy and exit code.

use super::exit;

/// Makes the type from one list: each doc comment is also what [`Reason::meaning`] gives, and the
/// codes are those of [`exit`], the usual one first.
macro_rules! reasons {
    ($( $(#[doc = $text:literal])+ $name:ident: $($code:ident),+; )+) => {
        /// Why a run ended as it did. A report holds it as text ([`Reason::as_str`]): a runner of
        /// another version or another image may have reasons that are not here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $( $(#[doc = $text])+ $name, )+
        }

        impl Reason {
            /// Every reason, in the order of the exit codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The text in reports, conditions and messages.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$name => stringify!($name), )+
                }
            }

            /// What happened and what helps.
            pub fn meaning(self) -> &'static str {
                match self {
                    $( Self::$name => concat!($($text),+).trim_start(), )+
                }
            }

            /// Exit codes a run may end with for this reason, the usual one first.
            pub fn exit_codes(self) -> &'static [i32] {
                match self {
                    $( Self::$name => &[$(exit::$code),+], )+
                }
            }
        }
    };
}

reasons! {
    /// The run is good.
    Completed: OK;
    /// The dump was restored and compared.
    Restored: OK;
    /// A dry run of a Restore: nothing was changed, and nothing found that would stop it.
    WouldRestore: OK;

    /// The run stood still for so long, as on a paused node, that what it stored may have been removed as a dead attempt's. Run again.
    StoodStill: FAILED;
    /// The pod was asked to end: it was deleted, evicted or preempted. Look at the node's events; a retry follows.
    Terminated: FAILED;
    /// The server or directory that a dump is verified in can't be made. Give spec.verify.volume more space, and use an image that has the server.
    ScratchFailed: FAILED;
    /// Compression or encryption failed. The message says why.
    EncodingFailed: FAILED;
    /// The archive can't be put together. The message says why.
    ArchiveFailed: FAILED;
    /// The runner can't be copied into the image of the client. The message says why.
    CopyFailed: FAILED;
    /// The manifest or record of the artefact can't be written. The message says why.
    ManifestFailed: FAILED;
    /// The directory for temporary files can't be written or read. Mount a writable volume with space.
    WorkdirFailed: FAILED;
    /// The database's client program can't be started. Use an image that has it.
    ClientNotStarted: FAILED;
    /// The HTTP client can't be made or a request can't be put together. CA certificates must be in the image or mounted.
    HttpFailed: FAILED;
    /// Receivers could not be notified. Check their URLs and Secrets.
    NotificationFailed: FAILED;
    /// Whoever read the download went away. Download again.
    ReaderGone: FAILED;
    /// Handlers for signals can't be set.
    SignalsFailed: FAILED;
    /// The runner failed unexpectedly. Report it with the log of the run.
    InternalError: FAILED;

    /// A setting is wrong; the message names it.
    InvalidSettings: SETTINGS;
    /// The dump refers to databases in a way that can't be renamed reliably. Restore it under its own names.
    NotRenamable: SETTINGS;
    /// Objects of the dump run with the rights of users that spec.definers does not allow. Allow them, or drop the definers.
    DefinerNotAllowed: SETTINGS;
    /// The dump can't be restored in one transaction and into one database. Download it and restore it by hand.
    NotOneTransaction: SETTINGS;
    /// The target already holds what would be restored. Restore under another name, or set overwrite.
    TargetNotEmpty: SETTINGS, SOURCE;
    /// The target is the server the dump came from. Restore under another name, or set overwrite.
    TargetIsSource: SETTINGS;
    /// The archive does not hold what was chosen. The message lists what it holds.
    NotInArchive: SETTINGS;
    /// The artefact does not hold a table or database that was chosen. The message names what is near.
    NotInArtefact: SETTINGS;
    /// The artefact can't be restored in parts, as it is no dump of the native engine. Restore it whole into another server or under another name, and copy the table.
    NotInParts: SETTINGS;
    /// What was chosen refers to tables that are neither chosen nor in the target. Choose them too, or leave the foreign keys out.
    NeedsOthers: SETTINGS;
    /// This part of the archive is not restored by a Restore. Download it and restore it by hand.
    RestoredByHand: SETTINGS;
    /// The artefact can't be verified by restore here. The message says what would help.
    NotVerifiable: SETTINGS;

    /// The database refuses user name, password or address. Check the Secret and from where the user may log in.
    AccessDenied: SOURCE;
    /// The account is locked. Unlock it, or use another user.
    AccountLocked: SOURCE;
    /// The user lacks a privilege. Grant what the message names.
    MissingPrivilege: SOURCE;
    /// The database sent nothing for too long. Look for locks, load and the network.
    SourceStalled: SOURCE;
    /// The host name of the database can't be resolved. Correct it.
    UnknownHost: SOURCE;
    /// The host name of the database can't be resolved. Correct it.
    HostNotFound: SOURCE;
    /// Nothing listens at the address of the database. Check host, port and that the server runs.
    ConnectionRefused: SOURCE, FAILED;
    /// The database can't be connected to. Check host, port, network policies and that the server runs.
    ConnectionFailed: SOURCE, FAILED;
    /// The database does not answer at its address. Check the address, network policies and firewalls.
    ConnectTimeout: SOURCE;
    /// The connection to the database broke. Look at the server's log. Exit code 1 where a Restore goes on in another pod.
    ConnectionLost: SOURCE, FAILED;
    /// A database that was named does not exist. Correct the list.
    UnknownDatabase: SOURCE;
    /// There is no database to dump. Create one, or grant the user the right to see it.
    NoDatabases: SOURCE;
    /// The dump is not whole: of a run, it is not kept; of an artefact, it can't be restored. Run the backup again.
    IncompleteDump: SOURCE, VERIFICATION;
    /// gobackup ended well but made no archive. Look at its log.
    NothingPacked: SOURCE;
    /// The target lacks a role that the dump names. Create it, or dump without owners and privileges.
    RoleMissing: SOURCE;
    /// The target refused a part of the dump. The message holds its words.
    RestoreFailed: SOURCE;
    /// The target is older than the server of the dump, of another maker, or lacks a module. Restore into a newer one.
    TargetTooOld: SOURCE;
    /// A table was altered during the dump, so there is no consistent copy. Run again, away from migrations.
    TableAltered: SOURCE;
    /// A table was dropped or renamed during the dump. Run again, away from migrations.
    TableVanished: SOURCE;
    /// A view or program refers to something that does not exist. Repair or drop it.
    InvalidView: SOURCE;
    /// A row is larger than max-allowed-packet. Raise it on the server and for the client.
    PacketTooLarge: SOURCE;
    /// TLS can't be set up. Check certificates, CA and the mode that is demanded.
    TlsFailed: SOURCE, FAILED;
    /// The client lacks the user's authentication plugin. Use an image whose client has it.
    AuthPluginMissing: SOURCE;
    /// The client can't dump this server so that the dump can be restored. Use an image with a fitting client.
    ClientDoesNotFit: SOURCE;
    /// The server's settings would cut the number of rows that are dumped. Lift the limit for the user.
    RowsLimited: SOURCE;
    /// Row-level policies would hide rows from the user. Dump as a user who bypasses them.
    RowsHidden: SOURCE;
    /// The client is older than the server. Use an image with a newer client.
    ClientTooOld: SOURCE;
    /// A lock was not granted in time. Run away from long transactions and migrations.
    LockWait: SOURCE;
    /// The server ended a query by its own time limit. Raise the limit for the user.
    QueryTimeout: SOURCE;
    /// The server has no connection free. Raise its limit, or run at another time.
    TooManyConnections: SOURCE;
    /// The user's password has expired. Set a new one.
    PasswordExpired: SOURCE;
    /// The server refuses a statement in its present mode or version. The message says which.
    ServerRefused: SOURCE;
    /// The client does not know an argument. Correct the additional arguments.
    UnknownOption: SOURCE;
    /// The before_script of a Database failed. Look at its output in the log.
    ScriptFailed: SOURCE;
    /// The client failed for a reason that is not known here. The message holds its words.
    DumpFailed: SOURCE;
    /// The client was killed. If by signal 9, raise the memory limit.
    ClientKilled: SOURCE;
    /// The client failed for a reason that is not known here. The message holds its words.
    ClientFailed: SOURCE, FAILED;

    /// The object is in an archive class of the store. Bring it back first.
    ArchiveClass: STORE;
    /// There is no space left. Free some, or raise the quota or limit that the message names.
    NoSpace: STORE, SOURCE, FAILED;
    /// The file system can't hold a file of this size. Store on another one, or compress.
    FileTooLarge: STORE;
    /// The user or key may not do this. Grant what the message names.
    PermissionDenied: STORE, SOURCE;
    /// The volume can't be written. Mount it writable.
    ReadOnly: STORE;
    /// The bucket or directory of the destination does not exist. Create it, or correct the destination.
    DestinationNotFound: STORE;
    /// What was named does not exist. Correct its name.
    NotFound: STORE, SOURCE;
    /// The directory is on the container's own disk, an emptyDir or memory, and gone with the pod. Mount a volume there.
    NotOnVolume: STORE;
    /// Something of this name is in the store already and is left alone. Run again.
    AlreadyExists: STORE;
    /// The server shows another host key than the Storage names. Check the server, then correct the key.
    HostKeyChanged: STORE;
    /// The store does not answer. Check its address, network policies and certificates.
    StoreUnreachable: STORE;
    /// The store paused for so long that the database hung up. Look at the store's load.
    StoreStalled: STORE;
    /// The clocks of node and store differ too much. Correct the node's.
    ClockSkewed: STORE;
    /// The store asks for fewer requests. Run at another time.
    RateLimited: STORE;
    /// The store took fewer bytes than were sent. Run again; look at the store's space.
    ShortWrite: STORE;
    /// The artefact is larger than an object of this store may be. Compress it, or back up fewer databases.
    ArtefactTooLarge: STORE;
    /// No such artefact is in the store. List what is stored.
    ArtefactNotFound: STORE;
    /// What was stored can't be read back. Exit code 0 where the store itself says that it is whole but in an archive class: nothing older is removed because of it.
    NotReadBack: STORE, OK;
    /// gobackup ended well but its archive is not in the store. Look at its log.
    NotStored: STORE;
    /// The store failed. The message holds its words.
    StoreFailed: STORE;

    /// What was read back differs from what was sent. Look at the store and the network.
    ReadBackDiffers: VERIFICATION;
    /// The artefact is damaged. Restore another one, and look at the store.
    Damaged: VERIFICATION;
    /// The archive is damaged. Restore another one, and look at the store.
    ArchiveDamaged: VERIFICATION;
    /// The artefact's manifest or record is there and its bytes are not: something else removed them.
    ArtefactGone: VERIFICATION;
    /// The artefact can't be read. The message says why.
    NotReadable: VERIFICATION;
    /// The artefact can't be decrypted. Check that the key belongs to its recipients.
    NotDecryptable: VERIFICATION;
    /// The dump does not load. Restore another one.
    NotRestorable: VERIFICATION;
    /// What was loaded differs from what was dumped. Do not use it; restore another one.
    RestoreDiffers: VERIFICATION;
    /// Not everything of the dump was loaded. Do not use the target.
    RestoreIncomplete: VERIFICATION;
    /// The backup before this one and the stored binary logs give something else than this backup holds. Do not trust a restore to a moment between the two: make a new backup, and restore to moments behind it.
    ReplayDiffers: VERIFICATION;

    /// The run took longer than it may. Look for locks and a slow network or volume, or raise the limit.
    Timeout: TIMEOUT;
}

impl Reason {
    /// The reason of this text; `None` for one that this version does not have.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|r| r.as_str() == text)
    }

    /// The usual exit code of a run that ends for this reason.
    pub fn exit_code(self) -> i32 {
        self.exit_codes().first().copied().unwrap_or(exit::FAILED)
    }

    /// True if another attempt can help: false where the settings are wrong.
    pub fn retry(self) -> bool {
        self.exit_code() != exit::SETTINGS
    }

    /// True if it says that what was to be used can't be connected to, or does not let this user in:
    /// not what went wrong afterwards.
    pub fn is_unreachable(self) -> bool {
        matches!(
            self,
            Self::AccessDenied
                | Self::AccountLocked
                | Self::SourceStalled
                | Self::PermissionDenied
                | Self::PasswordExpired
                | Self::AuthPluginMissing
                | Self::TooManyConnections
                | Self::UnknownHost
                | Self::HostNotFound
                | Self::ConnectTimeout
                | Self::ConnectionRefused
                | Self::ConnectionFailed
                | Self::ConnectionLost
                | Self::TlsFailed
                | Self::HostKeyChanged
                | Self::UnknownDatabase
                | Self::NotFound
                | Self::DestinationNotFound
                | Self::StoreUnreachable
        )
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, text: &str) -> bool {
        self.as_str() == text
    }
}

impl PartialEq<&str> for Reason {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == *text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_read_from_its_text_and_says_what_helps() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
            assert!(reason.meaning().ends_with('.'), "{reason}");
            assert!(!reason.meaning().contains("  "), "{reason}");
        }
        for other in ["", "OOMKilled", "accessDenied", "Access", "Completed2"] {
            assert_eq!(Reason::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_retry_is_in_vain_where_the_settings_are_wrong() {
        assert!(!Reason::InvalidSettings.retry() && !Reason::TargetNotEmpty.retry());
        assert!(Reason::NoSpace.retry() && Reason::Timeout.retry());
    }
}
